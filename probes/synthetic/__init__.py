"""Building a recorded node from a TOML description, as the kernel and the drivers would show it."""
