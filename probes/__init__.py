"""What sources say: this machine, a recorded one, dumps; and what moves bytes to measure."""
