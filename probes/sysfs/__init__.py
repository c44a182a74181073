"""Readers of sysfs files that several sources use."""
