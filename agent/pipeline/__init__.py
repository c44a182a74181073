"""From sources to a report: the registry of sources, the hang guard, `diagnose` and `cycle`."""
