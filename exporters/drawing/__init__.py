"""Pictures of a node as SVG."""
