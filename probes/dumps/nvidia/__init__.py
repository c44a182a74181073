"""Readers of NVIDIA's tools."""
