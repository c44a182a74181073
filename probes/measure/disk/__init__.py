"""Bandwidth of disks and file systems."""
