"""Where a node is in the network, from the files of other systems: rack, switches, NVLink domain."""
