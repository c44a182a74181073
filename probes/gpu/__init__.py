"""Sources about GPUs: NVML and AMD's compute driver."""
