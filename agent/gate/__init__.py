"""The gate: whether this node may run jobs."""
