"""Training data on storage: how many reads per second a job needs, and the file systems of a node that jobs can use."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..catalog.filesystems import FileSystem, filesystem_of
from ..facts.machine import Mount, Nvme
from ..inventory.snapshot import Snapshot
from ..site.schema import Storage
from .cluster import Cluster
from .parallelism import Job

_SMALL = 1 << 16  # tokens of smaller vocabularies take two bytes, others four (Megatron-LM, indexed_dataset.py)


class Reading(Struct, frozen=True):
    """All reads of training data: each sequence is one read at a random place."""

    mount: str
    reads: float  # per second, of all nodes
    size: int  # bytes of one
    possible: float  # reads per second of the file system
    source: str


def reading_of(job: Job, cluster: Cluster, step: float, store: Storage) -> Reading | None:
    """The reads of a job with steps of `step` seconds. None: the site file has no `iops` of the file system."""
    if store.iops is None:
        return None
    nodes = -(-cluster.gpus // (cluster.node_gpus or cluster.gpus))
    size = job.sequence * (2 if job.network.vocabulary < _SMALL else 4)
    allowed = min(nodes * store.iops, store.iops_total or nodes * store.iops)
    together = min(nodes * store.read, store.read_total or nodes * store.read)
    return Reading(store.mount, job.sequences / step, size, min(allowed, together / size), store.source)


def recognised(snapshot: Snapshot) -> Iterator[tuple[str, FileSystem]]:
    """The mount points of known file systems: those of the network, and EBS volumes."""
    models = {key: disk.model or "" for key, disk in snapshot.of(Nvme).items()}
    for point, mount in snapshot.of(Mount).items():
        disk = (mount.device or "").removeprefix("/dev/")
        model = next((model for key, model in models.items() if disk.startswith(f"{key}n")), "")
        if found := filesystem_of(mount.fstype or "", model):
            yield point, found
