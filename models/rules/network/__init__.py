"""Rules about NICs, their ports and the pairs of nodes."""
