"""Readers of what people write about devices: lists, tables and sentences."""
