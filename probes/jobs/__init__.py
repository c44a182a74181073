"""Readers of what the ranks of a running job record: the output of the NCCL Inspector."""
