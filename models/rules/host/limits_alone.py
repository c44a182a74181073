"""Limits in a dump that shows no device of the machine: whether they are too low depends on what the job uses."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.settings import settings
from ...facts.gpu import Gpu
from ...facts.machine import Mount, NcclFailure, Node, Pci, Port, Rdma, Setting
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import MIB, as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited
from .job_limits import SHARED_MEMORY

# The size of /dev/shm in a container without --shm-size (moby, daemon/config: DefaultShmSize).
_CONTAINER = 64 * MIB
_DEVICES = (Gpu, Pci, Rdma, Port, NcclFailure)


def _alone(snapshot: Snapshot) -> bool:
    return snapshot.origin == "dumps" and not any(snapshot.of(kind) for kind in _DEVICES)


def is_locked_memory(snapshot: Snapshot, setting: Setting) -> bool:
    """Select the limit on locked memory, if no device is shown."""
    return setting.key == "memlock" and _alone(snapshot)


def locked_memory(snapshot: Snapshot, setting: Setting) -> Iterator[Finding | NotChecked]:
    """The limit is too small if the job uses RDMA."""
    row = settings()["memlock"]
    if not (setting.value or "").isdecimal() or int(setting.value or 0) > (row.more_than or 0):
        return
    size = int(setting.value or 0)
    yield Finding(
        code="memlock-low",
        severity="info",
        confidence="possible",
        subject="node",
        message=f"the limit on locked memory is {as_bytes(size)}: a job that uses RDMA wants it unlimited",
        expected="unlimited",
        observed=size,
        unit="bytes",
        expected_source=row.source,
        cause=row.cause,
        evidence=cited(setting, "value"),
    )
    yield _not_shown("ibstat or lspci: whether the machine has an RDMA adapter")


def is_small_shared_memory(snapshot: Snapshot, mount: Mount) -> bool:
    """Select shared memory of the default size of containers, if no device is shown."""
    return mount.key == SHARED_MEMORY and _alone(snapshot) and mount.size is not None and mount.size <= _CONTAINER


def shared_memory(snapshot: Snapshot, mount: Mount) -> Iterator[Finding | NotChecked]:
    """The size is too small for a job on several GPUs."""
    node = snapshot.of(Node).get("node")
    yield Finding(
        code="shm-small",
        severity="info",
        confidence="possible",
        subject="node",
        message=f"{SHARED_MEMORY} has {as_bytes(mount.size or 0)}, the default of containers: a job on several GPUs "
        "wants 1 GiB or more",
        observed=mount.size,
        unit="bytes",
        expected_source="NCCL documentation, troubleshooting, shared memory",
        cause="the container was started with the default size" if node is None or node.container != "" else None,
        evidence=cited(mount, "size"),
    )
    yield _not_shown("nvidia-smi -L: whether the job uses several GPUs")


def _not_shown(how: str) -> NotChecked:
    why = "the text shows a limit, and no device that the job uses"
    return NotChecked(what="limits of jobs", subject="node", reason=Reason.INCOMPLETE, detail=why, how=how)


RULES = (
    Rule("memlock-low", Setting, ("value",), locked_memory, is_locked_memory),
    Rule("shm-small", Mount, ("size",), shared_memory, is_small_shared_memory),
)
