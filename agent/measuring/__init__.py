"""Active measurements: whether they may run, within which budget, and in which order."""
