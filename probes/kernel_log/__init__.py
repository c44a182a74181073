"""The kernel log: ring buffer, journal, and patterns of the lines about links and devices."""
