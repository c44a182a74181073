"""Readers of benchmark outputs."""
