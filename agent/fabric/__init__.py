"""`linkgauge fabric`: measurements between nodes that one of them coordinates over TCP."""
