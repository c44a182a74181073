"""Outputs about jobs."""
