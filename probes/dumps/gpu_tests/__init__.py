"""Readers of tests that run GPUs and compare results."""
