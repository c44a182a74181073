"""Rules about the collective library and its environment."""
