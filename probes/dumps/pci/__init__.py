"""Readers for lspci."""
