"""Sources about the node: processors, memory, services, settings, allocations."""
