"""The gate and the health check for Slurm."""
