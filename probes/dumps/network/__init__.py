"""Readers for outputs about NICs, ports and fabrics."""
