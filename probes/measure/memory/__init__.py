"""Bandwidth and latency of host memory."""
