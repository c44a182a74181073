"""Sources about PCI functions and their links."""
