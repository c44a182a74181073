"""Readers for outputs about a host: processors, disks, settings, kernel log, topology files."""
