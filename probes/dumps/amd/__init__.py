"""Readers for AMD's tools."""
