"""Readers of rates as people report them: rows, tables, lists and sentences."""
