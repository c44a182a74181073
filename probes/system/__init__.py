"""Sources for the node: processors, memory, services, settings, allocations."""
