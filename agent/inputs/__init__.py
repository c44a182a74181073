"""The inputs of a report: this machine, a mounted root, a capture, or outputs of tools."""
