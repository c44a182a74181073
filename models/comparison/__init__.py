"""Comparison of two nodes, or of one node at two times: what differs, the most relevant differences first."""
