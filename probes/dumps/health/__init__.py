"""Readers for health reports of processors, memory and disks, and for tools whose output shows no link."""
