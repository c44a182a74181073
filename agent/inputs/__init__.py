"""Where a report comes from: this machine, a mounted root, a capture, outputs of tools."""
