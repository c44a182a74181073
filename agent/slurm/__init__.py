"""The health check for Slurm."""
