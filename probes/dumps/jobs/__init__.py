"""Reports about running jobs."""
