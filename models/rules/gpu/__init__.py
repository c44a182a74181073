"""Rules about GPUs: presence, driver, state, clocks, memory, Xids."""
