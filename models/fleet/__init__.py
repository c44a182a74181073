"""Many nodes: rows of their reports, what differs within a machine type, and which nodes to drain first."""
