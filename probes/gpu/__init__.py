"""Sources for GPUs: NVML and AMD's compute driver."""
