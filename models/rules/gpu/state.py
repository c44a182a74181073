"""Modes of GPUs, leftovers of earlier jobs, and recovery actions that the driver requests."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...facts.gpu import Gpu
from ...facts.machine import Node
from ...facts.recovery import OF_NODE
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Basis, Finding, Severity
from ..core.gpus import (
    function_of,
    gpu_cohort,
    gpu_evidence,
    gpu_name,
    gpu_product,
    majority,
    place_of,
    subject_of,
)
from ..core.log_history import events_about
from ..core.rule import Rule
from .memory import unrepaired
from .missing import gone
from .xid import named_errors, xid

_MODES = {"mig": "MIG", "ecc": "ECC", "persistence": "persistence mode", "compute_mode": "compute mode"}
# Driver and firmware reserve up to about 2 GB of a large GPU. Older drivers count this as used.
_RESERVED, _RESERVED_SHARE = 2 << 30, 0.05
_NO_DISPLAY = 0x0302  # PCI class of a 3D controller, which has no display
# The case of the finding for each action. Two actions have the same steps.
_CASES = {
    "GPU reset": "GPU reset",
    "node reboot": "reboot",
    "system reboot": "reboot",
    "bus reset": "bus reset",
    "drain P2P": "drain P2P",
    "drain and reset": "drain and reset",
}


def mode(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """A mode differs from the site file, the machine type or most equal GPUs of the node, or no job can use it.

    ECC that is off on a product with HBM is "info" if equal GPUs agree: an operator may have switched it off.

    MIG on some GPUs of a node can be intended. The site file has no mode per GPU but can silence the finding.
    """
    wrong = [one for field in _MODES if (one := _wrong(snapshot, gpu, field))]
    useless = gpu.compute_mode == "prohibited"
    pending = gpu.ecc is not None and gpu.ecc_pending is not None and gpu.ecc != gpu.ecc_pending
    if not (wrong or useless or pending):
        return
    texts = [one.text for one in wrong]
    named = any(_MODES["compute_mode"] in text for text in texts)
    texts += ["no job can use it" if named else "compute mode is prohibited: no job can use it"] if useless else []
    texts += [f"ECC will be {_word(gpu.ecc_pending)} after the next reset, and is {_word(gpu.ecc)}"] if pending else []
    differs = any(one.basis != "capability" for one in wrong)
    severity: Severity = "critical" if useless else "warning" if differs else "info"
    basis = wrong[0].basis if wrong else None
    yield Finding(
        code="gpu-mode",
        severity=severity,
        confidence="likely" if basis == COHORT and not useless else "certain",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)}: {'; '.join(texts)}",
        basis=basis,
        expected_source=wrong[0].source if wrong else None,
        cause="it was set so, or the GPU was reset or replaced and not set again",
        case=None if wrong or useless else "pending",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, *(field for field in _MODES if any(_MODES[field] in text for text in texts))),
    )


class _Wrong(Struct, frozen=True):
    """A wrong mode as text, and the expected mode with its basis and source."""

    text: str
    wanted: bool | str
    basis: Basis
    source: str


def wanted_modes(snapshot: Snapshot, gpu: Gpu) -> dict[str, str]:
    """The expected value of each wrong mode, as nvidia-smi takes it."""
    wanted: dict[str, bool | str] = {"compute_mode": "default"} if gpu.compute_mode == "prohibited" else {}
    wanted |= {field: one.wanted for field in _MODES if (one := _wrong(snapshot, gpu, field))}
    return {
        field: value.upper().replace(" ", "_") if isinstance(value, str) else str(int(value))
        for field, value in wanted.items()
    }


def has_comparison(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs with a known mode that something is expected of. In a dump of one GPU, nothing is of some modes."""
    known = [field for field in _MODES if getattr(gpu, field) is not None]
    can_be_wrong = gpu.compute_mode is not None or gpu.ecc_pending is not None
    expected = any(_wanted(snapshot, gpu, field)[0] is not None for field in known)
    return bool(known) and (snapshot.origin != "dumps" or can_be_wrong or expected)


def _wanted(snapshot: Snapshot, gpu: Gpu, field: str) -> tuple[bool | str | None, Basis, str]:
    """The expected mode with its basis and source; None: nothing is expected."""
    machine = snapshot.machine
    wanted = getattr(machine, field) if machine else None
    if machine and wanted is not None:
        return wanted, "site" if machine in snapshot.site.machine else "profile", machine.name
    wanted = majority(getattr(other, field) for other in gpu_cohort(snapshot, gpu))
    product = gpu_product(snapshot, gpu)
    if field == "ecc" and not wanted and product and product.memory_kind == "hbm":
        return True, "capability", f"a new {product.name}"
    return wanted, COHORT, "most equal GPUs of this node"


def _wrong(snapshot: Snapshot, gpu: Gpu, field: str) -> _Wrong | None:
    """None: the mode is right or not known."""
    is_ = getattr(gpu, field)
    wanted, basis, source = _wanted(snapshot, gpu, field)
    if is_ is None or wanted is None or is_ == wanted:
        return None
    by = "most equal GPUs" if basis == COHORT else source
    return _Wrong(f"{_MODES[field]} is {_word(is_)}, not {_word(wanted)} as on {by}", wanted, basis, source)


def _word(value: bool | str | None) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


def in_use(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """Processes before a job begins, or used memory without a process.

    Outside a job context, processes are normal. Used memory without a process is ignored if it is below the reserve of
    driver and firmware, while the GPU works, and if its process may be invisible (_sees_all_processes).
    """
    used, reserved = gpu.memory_used or 0, max(_RESERVED, _RESERVED_SHARE * (gpu.memory or 0))
    idle = gpu.clock_reasons is None or "idle" in gpu.clock_reasons
    if snapshot.context == "job" and gpu.processes:
        count = "1 process uses" if gpu.processes == 1 else f"{gpu.processes} processes use"
        text = f"{count} it, with {as_bytes(used)} of its memory, before the job begins"
    elif gpu.processes == 0 and used > reserved and idle and _sees_all_processes(snapshot, gpu):
        text = f"{as_bytes(used)} of its {as_bytes(gpu.memory or 0)} are in use, and no process uses it"
    else:
        return
    yield Finding(
        code="gpu-in-use",
        severity="warning",
        confidence="likely",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)}: {text}",
        expected=0,
        observed=gpu.processes or used,
        unit="processes" if gpu.processes else "bytes",
        cause="an earlier job that did not end completely",
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "processes", "memory_used"),
    )


def _sees_all_processes(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether every user of the GPU's memory is a visible compute process.

    Containers do not show processes of others. Guests may use a part of a GPU. A GPU with a display (VGA controller)
    uses memory for graphics. The kernel uses memory of a GPU that is a NUMA node.
    """
    node, function = snapshot.of(Node).get("node"), function_of(snapshot, gpu)
    alone = node is not None and node.container == "" and snapshot.context != "job"
    divided = gpu.mig or gpu.virtualization not in (None, "none", "passthrough") or gpu.c2c_links
    computes = function is not None and function.pci_class is not None and function.pci_class >> 8 == _NO_DISPLAY
    return alone and computes and not divided


def recovery(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The driver requests a reset or a reboot, and no other finding on the GPU has this remedy.

    A request for the whole node is one finding on the node, because the driver reports it for each of its GPUs.
    """
    action = gpu.recovery
    if action in OF_NODE:
        yield from _of_node(snapshot, gpu, str(action))
        return
    repaired = "reset" in (action or "") and (gpu.remap_pending or gpu.remap_failed or unrepaired(gpu))
    if action in (None, "none") or repaired or subject_of(gpu) in gone(snapshot) or _logged(snapshot, gpu):
        return
    yield Finding(
        code="gpu-xid",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} had an error, and its driver asks for: {action}",
        expected="none",
        observed=action,
        cause="an error that the driver logged (Xid) and cannot repair itself",
        case=_CASES.get(str(action)),
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, "recovery"),
    )


def _of_node(snapshot: Snapshot, gpu: Gpu, action: str) -> Iterator[Finding]:
    """One finding for all GPUs with this action, at the first of them."""
    asking = [one for one in snapshot.of(Gpu).values() if one.recovery == action]
    if gpu is not asking[0]:
        return
    errors = named_errors(snapshot)
    after = f" after {errors}" if errors else "; the log names no current Xid"
    yield Finding(
        code="gpu-xid",
        severity="warning" if action not in _CASES else "critical",
        subject="node",
        message=f"the GPU driver asks for this node: {action}{after}",
        expected="none",
        observed=action,
        cause="an error of a GPU that the driver logged (Xid) and cannot repair itself",
        case=_CASES.get(action, "IMEX"),
        evidence=gpu_evidence(gpu, "recovery"),
    )


def _logged(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the kernel's log names the error. Then xid() reports it with the same code."""
    logged = events_about(snapshot, gpu.address, "xid", "recovery") if gpu.address else []
    return any(True for event in logged for _ in xid(snapshot, event))


RULES = (
    Rule("gpu-mode", Gpu, tuple(f"{field}?" for field in _MODES), mode, has_comparison),
    Rule("gpu-in-use", Gpu, ("processes", "memory_used", "memory"), in_use),
    Rule("gpu-xid", Gpu, ("recovery",), recovery),
)
