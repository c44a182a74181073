"""The traffic of links at one time: rates and rises of counters between two readings."""
