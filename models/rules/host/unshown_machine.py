"""Settings and limits in a text that does not show the machine: whether they are a fault depends on what it has.

A log of NCCL alone names no PCI function and no RDMA device, and a list of limits names no device at all. A variable
that switches off a fast path, or a limit that RDMA or several GPUs need, is information and a gap in such a text. On a
machine with the path it is a warning or critical (`settings`, `job_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...catalog.settings import Row, settings
from ...facts.gpu import Gpu
from ...facts.machine import Mount, NcclFailure, Node, Pci, Port, Rdma, Setting
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import MIB, as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited
from .compared_rates import says_slow
from .job_limits import SHARED_MEMORY
from .settings import CONDITIONS, has_wrong_value, wrong_values

_CODE, _INACTIVE = "nccl-env", "nvlink-inactive"
_PATHS = frozenset({"rdma", "adapter", "verbs", "gpudirect"})
_DECIDING = "ibstat on this machine", "nvidia-smi nvlink -s on this machine"
# The size of /dev/shm in a container without --shm-size (moby, daemon/config: DefaultShmSize).
_CONTAINER = 64 * MIB
_SAID = "the text says that copies are slow"
_UNSHOWN = "on bare metal with several GPUs, peer traffic is slower; the text does not show the devices of the machine"
_DEVICES = (Gpu, Pci, Rdma, Port, NcclFailure)


def is_undecided(snapshot: Snapshot, setting: Setting) -> bool:
    """Select variables and options of dumps whose row needs a path that no fact shows or excludes."""
    row = settings().get(setting.key)
    if row is None or row.code not in (_CODE, _INACTIVE) or snapshot.origin != "dumps":
        return False
    if row.code == _INACTIVE:
        return not snapshot.of(Gpu) and bool(wrong_values(row, setting))
    if len(snapshot.of(Pci)) + len(snapshot.of(Rdma)):
        return False
    return bool(_missing(snapshot, row)) and _missing(snapshot, row) <= _PATHS


def _with_code(code: str) -> Callable[[Snapshot, Setting], bool]:
    def where(snapshot: Snapshot, setting: Setting) -> bool:
        row = settings().get(setting.key)
        return row is not None and row.code == code and is_undecided(snapshot, setting)

    return where


def _missing(snapshot: Snapshot, row: Row) -> set[str]:
    """The conditions of the row that no fact meets."""
    needed = (condition.split("|") for condition in row.where)
    return {name for names in needed if not any(CONDITIONS[one](snapshot) for one in names) for name in names}


def undecided(snapshot: Snapshot, setting: Setting) -> Iterator[Finding | NotChecked]:
    """The variable has a value that switches the path off."""
    row = settings()[setting.key]
    wrong = wrong_values(row, setting)
    if not wrong:
        return
    value, certain = " and ".join(wrong), _over_sockets(snapshot)
    yield Finding(
        code=row.code or _CODE,
        severity="warning" if certain else "info",
        confidence="likely" if certain else "possible",
        subject="node",
        fact=f"{setting.key}={value} is in force",
        message=f"{row.says.format(value=value)}. The text does not show whether this machine has such a path",
        expected=f"not {value}",
        observed=value,
        expected_source=row.source,
        cause=row.cause,
        evidence=cited(setting, "value"),
    )
    why = f"{setting.key}={value}: the text does not show the devices of the machine"
    yield NotChecked(
        what="Setting", subject=setting.key, reason=Reason.INCOMPLETE, detail=why, how=_DECIDING[row.code == _INACTIVE]
    )


def _over_sockets(snapshot: Snapshot) -> bool:
    """Whether the bytes of the job go over sockets: NCCL says so, or its two paths inside a node are switched off."""
    both = all(has_wrong_value(snapshot, name) for name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"))
    return both or "sockets" in snapshot.of(NcclFailure)


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


def is_translation(snapshot: Snapshot, setting: Setting) -> bool:
    """Select an IOMMU that translates, if no device is shown. The log of a whole boot would show GPUs."""
    node = snapshot.of(Node).get("node")
    known = node is not None and (node.kernel or node.virtual)
    return (
        setting.key == "iommu" and _alone(snapshot) and not known and bool(wrong_values(settings()["iommu"], setting))
    )


def translation(snapshot: Snapshot, setting: Setting) -> Iterator[Finding | NotChecked]:
    """The IOMMU translates: it costs bandwidth where GPUs and NICs send each other data, or where the text says so."""
    row, slow = settings()["iommu"], says_slow(snapshot)
    value = " and ".join(wrong_values(row, setting))
    yield Finding(
        code="iommu-translation",
        severity="warning" if slow else "info",
        confidence="possible",
        subject="node",
        message=f"the IOMMU translates the addresses of DMA (domains of type {value}): {_SAID if slow else _UNSHOWN}",
        expected="identity",
        observed=value,
        expected_source=row.source,
        cause=row.cause,
        evidence=cited(setting, "value"),
    )
    if not slow:
        yield _not_shown("lspci -nn: whether the machine has several GPUs", "an IOMMU that translates", "kind of IOMMU")


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


def _not_shown(how: str, shown: str = "a limit", what: str = "limits of jobs") -> NotChecked:
    why = f"the text shows {shown}, and no device that the job uses"
    return NotChecked(what=what, subject="node", reason=Reason.INCOMPLETE, detail=why, how=how)


RULES = (
    Rule(_CODE, Setting, ("value",), undecided, _with_code(_CODE)),
    Rule(_INACTIVE, Setting, ("value",), undecided, _with_code(_INACTIVE)),
    Rule("memlock-low", Setting, ("value",), locked_memory, is_locked_memory),
    Rule("iommu-translation", Setting, ("value",), translation, is_translation),
    Rule("shm-small", Mount, ("size",), shared_memory, is_small_shared_memory),
)
