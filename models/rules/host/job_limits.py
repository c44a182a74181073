"""Limits of a process. They apply inside a job or in the output of its tools, never to the machine as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import Mount, Node, Numa, Pci, Setting
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...facts.units import GIB, as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited
from ..pcie.direct_paths import gpus

SHARED_MEMORY = "/dev/shm"
# NCCL's documentation asks for this in containers (troubleshooting, shared memory): docker run --shm-size=1g.
_SHARED = GIB
NOT_A_JOB = NotChecked(
    what="limits of jobs",
    subject="node",
    reason=Reason.OTHER_CONTEXT,
    detail="each process has its own limits, and this process is not in a job",
    how="run linkgauge diagnose --context job inside a job",
)

_MAYBE_A_CONTAINER = NotChecked(
    what="Node.container",
    subject="node",
    reason=Reason.OTHER_CONTEXT,
    detail="nothing says whether this is a container, which has shared memory of its own",
    how="run linkgauge diagnose --context job inside a job",
)


def is_shared_memory(snapshot: Snapshot, mount: Mount) -> bool:
    """Select the shared memory of nodes with several GPUs."""
    return mount.key == SHARED_MEMORY and len(gpus(snapshot)) > 1


def shared_memory(snapshot: Snapshot, mount: Mount) -> Iterator[Finding | NotChecked]:
    """Shared memory is smaller than NCCL needs. Jobs without containers use the shared memory of the host."""
    node = snapshot.of(Node).get("node")
    host = snapshot.context == "host"
    if host and snapshot.origin != "dumps" and (node is None or node.container is None):
        yield _MAYBE_A_CONTAINER
    elif host and (node is None or node.container != "" or snapshot.origin == "dumps"):
        yield NOT_A_JOB
    elif mount.size is not None and mount.size < _SHARED:
        yield Finding(
            code="shm-small",
            severity="critical",
            subject="node",
            message=f"{SHARED_MEMORY} has {as_bytes(mount.size)}, NCCL asks for {as_bytes(_SHARED)}",
            expected=_SHARED,
            observed=mount.size,
            unit="bytes",
            expected_source="NCCL documentation, troubleshooting, shared memory",
            cause="the size in /etc/fstab, or the machine has little memory"
            if host
            else "the container was started with the default size",
            evidence=(mount.cites.get("size", Evidence(f"statvfs {SHARED_MEMORY}", f"{mount.size} bytes")),),
        )


def has_job_gpus(snapshot: Snapshot, numa: Numa) -> bool:
    """In a job, select NUMA nodes with CPUs that are local to a GPU of the job."""
    return snapshot.context != "host" and bool(numa.cpus) and bool(_gpus_near(snapshot, numa))


def hidden(snapshot: Snapshot, numa: Numa) -> Iterator[Finding]:
    """The job may use the GPUs of a NUMA node and not its memory."""
    allowed = snapshot.of(Setting).get("mems_allowed")
    numbers = _numbers(allowed.value or "") if allowed else set()
    if not allowed or not numbers or numa.key in {f"numa{number}" for number in numbers}:
        return
    near = _gpus_near(snapshot, numa)
    yield Finding(
        code="numa-memory-missing",
        severity="warning",
        subject=numa.key,
        message=f"the job may use {', '.join(near)} and not the memory of {numa.key} beside it: its memory is on node "
        f"{allowed.value}",
        expected=numa.key,
        observed=allowed.value,
        cause="a cpuset of the job's control group: copies to these GPUs cross the processors' interconnect",
        case="cpuset",
        evidence=cited(allowed, "value"),
    )


def _gpus_near(snapshot: Snapshot, numa: Numa) -> list[str]:
    """The keys of the job's GPUs on this NUMA node. The driver shows only the GPUs of the job, sysfs shows all."""
    functions = snapshot.of(Pci)
    places = {gpu.key: functions.get(gpu.address or "") for gpu in snapshot.of(Gpu).values()}
    return [key for key, function in places.items() if function and f"numa{function.numa}" == numa.key]


def _numbers(text: str) -> set[int]:
    """The numbers of "0-1,3". Empty if the text is not such a list."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and len(first + last) < 10):
            return set()
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


RULES = (
    Rule("shm-small", Mount, ("size", "free?"), shared_memory, is_shared_memory),
    Rule("numa-memory-missing", Numa, ("cpus", "memory?"), hidden, has_job_gpus),
)
