"""Readers of outputs about NICs, ports and fabrics."""
