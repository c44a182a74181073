"""Readers of lspci."""
