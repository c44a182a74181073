"""Time to write and read a checkpoint on storage that all nodes share."""

from __future__ import annotations

import math

from msgspec import Struct

from ..site.schema import Storage
from . import transformer_sizes as sizes
from .cluster import Cluster
from .parallelism import Job

# Of a parameter: its weight in bf16, and in fp32 its copy and both moments of Adam (Rajbhandari and others, "ZeRO").
_BYTES = 14


class Checkpoint(Struct, frozen=True):
    """A checkpoint on one file system. All nodes write and read their parts at the same time."""

    mount: str
    size: float  # bytes
    write: float  # seconds
    read: float
    source: str


def checkpoint_of(job: Job, cluster: Cluster, store: Storage, size: float | None = None) -> Checkpoint:
    """The checkpoint of a job. Without a size, with weights and optimizer."""
    size = size or float(_BYTES * sizes.parameters(job.network))
    nodes = math.ceil(cluster.gpus / (cluster.node_gpus or cluster.gpus))
    writing, reading = (
        min(nodes * each, together or math.inf)
        for each, together in ((store.write, store.write_total), (store.read, store.read_total))
    )
    return Checkpoint(store.mount, size, size / writing, size / reading, store.source)
