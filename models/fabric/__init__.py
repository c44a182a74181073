"""Measurements between nodes: which pairs, in which rounds, and what their rates have in common."""
