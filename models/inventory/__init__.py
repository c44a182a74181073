"""From facts to a snapshot: PCI tree, GPU links, ports, sockets, machine type."""
