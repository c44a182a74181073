"""Readers for NVIDIA's tools."""
