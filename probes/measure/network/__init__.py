"""Bandwidth and latency of NIC ports."""
