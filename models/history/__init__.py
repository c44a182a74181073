"""What a node was like before: its reports and measured rates, and lasting changes of a rate."""
