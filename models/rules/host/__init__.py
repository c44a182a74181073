"""Rules about the host: memory, processors, settings, limits, storage."""
