"""The kernel log: ring buffer, journal, and the lines that concern links."""
