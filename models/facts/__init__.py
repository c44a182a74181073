"""Record types: facts about machines and GPUs, observations, counters, units; how facts merge."""
