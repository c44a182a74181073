"""Readers for the output of benchmarks."""
