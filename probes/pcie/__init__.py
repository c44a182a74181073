"""Sources for PCI functions and their links."""
