"""What a node is, what its links should give, and what differs. Knows no host, no clock and no memory."""
