"""What a node is, what its links should reach, and what differs. This package reads no host, no clock and no state
file.
"""
