"""The seam for all reads: a live machine, a mounted root, a recorded machine."""
