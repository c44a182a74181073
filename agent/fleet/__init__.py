"""Rows of many reports, from files or from Prometheus, and the engine that computes with them."""
