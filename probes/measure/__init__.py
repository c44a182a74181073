"""Active bandwidth probes."""
