"""Rules about PCIe links, errors, access control and direct paths."""
