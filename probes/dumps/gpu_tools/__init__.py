"""Readers of tools that run or watch GPUs, other than those that come with their drivers."""
