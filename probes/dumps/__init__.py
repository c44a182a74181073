"""Readers for the output of other tools, one file per family of tools: read.py reads a text, registry.py lists them.

This file imports no reader: a probe that runs one tool imports the reader of this tool alone.
"""
