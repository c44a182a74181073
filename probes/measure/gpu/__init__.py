"""Bandwidth of copies to, from and between GPUs, and of collectives."""
