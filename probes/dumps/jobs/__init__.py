"""Reports about running jobs, and NCCL's log of a job."""
