"""A node built from a description in TOML, as the kernel and the drivers would show it."""
