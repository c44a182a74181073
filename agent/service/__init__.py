"""`linkgauge serve`: the loop, its schedule, its configuration and its checkpoint."""
