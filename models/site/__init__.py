"""The site file: what an operator expects of nodes."""
