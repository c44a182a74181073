"""Readers of AMD's tools."""
