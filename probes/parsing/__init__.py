"""Parsers of single values."""
