"""The NVLink fabric behind NVSwitches: each GPU must have joined it, and the fabric manager must run.

Since NVLink 4 the driver reports whether a GPU has joined. It reports "not supported" on healthy machines for A100 and
older, cards with bridges, boards without switches and single GPUs (leptonai/gpud#1140, #1147, #1206). It reports the
same for a tray of four GB200 that sees no switch, which is a fault (#1108).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ...facts.gpu import Driver, Gpu
from ...facts.machine import Event, Node, Pci, Service
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.gpus import gpu_cohort, gpu_evidence, gpu_name, gpu_product, place_of, subject_of
from ..core.rule import Rule
from ..core.wording import cited, gap
from .interconnect_kind import is_alone, is_guest, is_part, switched, switches

MANAGER = "nvidia-fabricmanager"
_STATE: tuple[str, ...] = ("fabric_state",)
_SETTLES = 600.0  # seconds after boot in which a fabric may still come up
_MEANS = {
    "not started": "the GPU has not started to join it",
    "in progress": "it waits for the fabric manager",
    "not supported": "its driver found no NVSwitch at the other end of its links",
}
_PASSING = {"route recovery", "access timeout recovery", "global fabric manager disconnected"}  # bytes still flow

_FAULTY = "an NVLink, an NVSwitch or a route of the fabric failed: the fabric manager's log says which"


def belongs_to_fabric(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs that belong to a fabric, by their product or by the fabric state of the driver."""
    known = gpu_product(snapshot, gpu)
    return not is_part(gpu) and (
        (known is not None and known.fabric) or gpu.fabric_state not in (None, "not supported")
    )


def has_not_joined(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the GPU has not joined the fabric that it belongs to."""
    if gpu.fabric_state in ("not started", "in progress"):
        return not is_part(gpu)
    known = gpu_product(snapshot, gpu)
    if gpu.fabric_state != "not supported" or not known or not known.fabric or is_part(gpu) or is_alone(snapshot):
        return False
    found = switched(snapshot, gpu)
    return bool(known.c2c_rate and len(gpu_cohort(snapshot, gpu)) > 1) if found is None else found


def cut_off(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Whether the GPU has not joined because it has no active link."""
    known = gpu_product(snapshot, gpu)
    return (
        gpu.nvlinks == 0
        and known is not None
        and known.fabric
        and not is_alone(snapshot)
        and has_not_joined(snapshot, gpu)
    )


def incomplete(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The GPU has not joined its fabric, joined with an error, or the fabric reports a fault."""
    status, faults, joined = gpu.fabric_status or "Success", gpu.fabric_faults or (), False
    if has_not_joined(snapshot, gpu):
        if cut_off(snapshot, gpu) or f"nvlink-fabric-incomplete:{subject_of(gpu)}" in explained(snapshot):
            return
        severity, confidence = _young(snapshot)
        seen, fields = str(gpu.fabric_state), _STATE
        fact = f"has not joined its NVLink fabric: state {seen}"
        text = f"{fact}, {_MEANS[seen]}"
    elif gpu.fabric_state == "completed" and status != "Success":
        severity, confidence, seen, fields = "critical", "certain", status, (*_STATE, "fabric_status")
        text = fact = f"is no member of its NVLink fabric: state completed, status {status}"
    elif gpu.fabric_state in ("completed", None) and faults:  # an excerpt may have the lines of the health alone
        severity, confidence = "warning" if set(faults) <= _PASSING else "critical", "certain"
        seen, fields = ", ".join(faults), ("fabric_faults",)
        named = "has joined its NVLink fabric, which" if gpu.fabric_state else "reports a fabric that"
        text = fact = f"{named} is not healthy: {seen}"
        joined = True
    else:
        return
    yield Finding(
        code="nvlink-fabric-incomplete",
        severity=severity,
        confidence=confidence,
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        fact=fact,
        message=f"{gpu_name(snapshot, gpu)} {text}",
        expected="completed, Success",
        observed=seen,
        cause=_FAULTY if joined else _cause(snapshot, gpu),
        case="not healthy" if joined else None,
        location=place_of(snapshot, gpu),
        evidence=gpu_evidence(gpu, *fields),
    )


def shows_faults_alone(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs of an excerpt that has the health of the fabric and not its state."""
    return gpu.fabric_state is None and bool(gpu.fabric_faults)


def _young(snapshot: Snapshot) -> tuple[Severity, Literal["certain", "likely"]]:
    """Severity and confidence: lower in the first minutes after boot, when the fabric may still come up."""
    node = snapshot.of(Node).get("node")
    early = node is not None and node.booted is not None and snapshot.now - node.booted < _SETTLES
    return ("warning", "likely") if early else ("critical", "certain")


def _cause(snapshot: Snapshot, gpu: Gpu) -> str:
    known = gpu_product(snapshot, gpu)
    if known and known.c2c_rate:
        return "its partition, or the fabric manager and the switches of the rack, which are not in this node"
    if is_guest(snapshot) and not switches(snapshot):
        return "the host's fabric manager has not given this virtual machine its partition"
    return "the fabric manager does not work, does not fit the driver, or left this GPU out after an error"


def local(snapshot: Snapshot) -> list[Gpu]:
    """The GPUs whose fabric needs a manager on this node.

    For a rack (GB200) it runs on the switch trays. For a virtual machine without switches it runs on the host.
    """
    seen = switches(snapshot)
    if is_guest(snapshot) and not seen:
        return []
    known = [(gpu, gpu_product(snapshot, gpu)) for gpu in snapshot.of(Gpu).values() if not is_part(gpu)]
    rack = any(it and it.c2c_rate for _, it in known)
    return [
        gpu
        for gpu, it in known
        if it
        and not it.c2c_rate
        and (it.fabric or (seen and it.link_kind == "nvlink" and it.links and not it.bridged))
        or (it is None and not rack and gpu.fabric_state in ("not started", "in progress"))
    ]


def explained(snapshot: Snapshot) -> tuple[str, ...]:
    """The findings that a stopped fabric manager explains: GPUs that have not joined, and inactive links.

    For A100 and older the driver reports no fabric state. Without the manager they have no active link.
    """
    service = snapshot.of(Service).get(MANAGER)
    if service is None or service.running is not False:
        return ()
    names = [f"nvlink-fabric-incomplete:{subject_of(gpu)}" for gpu in local(snapshot) if has_not_joined(snapshot, gpu)]
    cut = [
        gpu
        for gpu in local(snapshot)
        if gpu.nvlinks == 0 and gpu.fabric_state != "completed" and not is_alone(snapshot)
    ]
    return (*names, *(f"nvlink-inactive:{subject_of(gpu)}" for gpu in cut))


def is_needed_manager(snapshot: Snapshot, service: Service) -> bool:
    """Select the fabric manager, if GPUs of this node need it."""
    return service.key == MANAGER and bool(local(snapshot))


def may_be_mismatched(snapshot: Snapshot, service: Service) -> bool:
    """Select the fabric manager, if GPUs need it or no product of a GPU is known: its log names both versions."""
    driver = snapshot.of(Driver).get("nvidia")
    if service.key != MANAGER or driver is None or driver.version is None:
        return False
    known = any(gpu_product(snapshot, gpu) for gpu in snapshot.of(Gpu).values())
    return bool(local(snapshot)) or not known


def manager_down(snapshot: Snapshot, service: Service) -> Iterator[Finding]:
    """The fabric manager does not run, and the fabric is not complete. A complete fabric works without it."""
    if service.running:
        return
    gpus, names = local(snapshot), explained(snapshot)
    out, cut = [gpu for gpu in gpus if has_not_joined(snapshot, gpu)], [gpu for gpu in gpus if gpu.nvlinks == 0]
    stateless = (gpu for gpu in gpus if gpu.fabric_state in (None, "not supported"))
    seen = len(switches(snapshot))
    boards = bool(seen) or (snapshot.origin == "dumps" and any(switched(snapshot, gpu) for gpu in gpus))
    unknown = [gpu for gpu in stateless if gpu.failure is None] if boards else []
    if out:
        total = f" of {len(gpus)}" if all(gpu_product(snapshot, gpu) for gpu in gpus) else ""
        text = f"{len(out)}{total} GPUs have not joined their NVLink fabric ({out[0].fabric_state})"
    elif names:
        text = f"no NVLink of {len(cut)} of {len(gpus)} GPUs is up"
    elif unknown:  # it may run in another container (gpu-operator), and the driver reports no fabric state
        which = f"there are {seen}" if seen else "its GPUs need"
        text = f"{which} NVSwitches: if nothing else has set them up, CUDA fails (error 802)"
    else:
        return
    proofs = [one for gpu in out or cut for one in gpu_evidence(gpu, "fabric_state" if out else "nvlinks")]
    running = service.cites.get("running", Evidence(service.key, "not running"))
    yield Finding(
        code="fabric-manager-down",
        severity="critical" if names else "info",
        confidence="certain" if out else "likely" if names else "possible",
        subject=service.key,
        message=f"the service {service.key} does not run, and {text}",
        expected="running",
        observed="not running",
        cause=_mismatch(snapshot, service) or "it was not started, or it failed: its journal says why",
        explains=names,
        evidence=(running, *proofs),
    )


def is_stopped_somewhere(snapshot: Snapshot, service: Service) -> bool:
    """Select a fabric manager that does not run, in a text without its log and without the state of the fabric."""
    if snapshot.origin != "dumps" or service.key != MANAGER or service.running is not False or service.version:
        return False
    gpus = local(snapshot)  # their driver would show the state of the fabric, and the text does not have it
    if gpus and all(gpu.fabric_state is None and gpu.failure is None for gpu in gpus):
        return not any(manager_down(snapshot, service))
    others = bool(snapshot.of(Gpu)) or bool(snapshot.of(Pci)) or bool(snapshot.of(Event))
    return not others


def stopped_somewhere(snapshot: Snapshot, service: Service) -> Iterator[Finding | NotChecked]:
    """The fabric manager does not run, and the text does not show whether the machine has NVSwitches, which need it."""
    yield Finding(
        code="fabric-manager-down",
        severity="info",
        confidence="possible",
        subject=service.key,
        message=f"the service {service.key} does not run: without it, CUDA fails on GPUs behind NVSwitches (error 802)",
        expected="running",
        observed="not running",
        cause="it found no NVSwitch, or its version is not that of the driver: its journal says why",
        evidence=cited(service, "running"),
    )
    why = "the fabric manager does not run, and the text shows neither NVSwitches nor the state of the fabric"
    how = "nvidia-smi -q (Fabric); lspci -d 10de: | grep -i bridge"
    yield from gap(snapshot, "Service", service.key, Reason.INCOMPLETE, why, how)


def _mismatch(snapshot: Snapshot, service: Service) -> str | None:
    """The versions of fabric manager and driver as text, if they differ. The manager requires the same version."""
    driver = snapshot.of(Driver).get("nvidia")
    if not driver or not driver.version or not service.version or driver.version == service.version:
        return None
    return f"the fabric manager is version {service.version}, the driver {driver.version}: they must be the same"


def version(snapshot: Snapshot, service: Service) -> Iterator[Finding]:
    """The fabric manager does not fit the driver. If the fabric is down because of it, manager_down() reports it."""
    text = _mismatch(snapshot, service)
    if text and not (service.running is False and (explained(snapshot) or any(manager_down(snapshot, service)))):
        yield Finding(
            code="driver-mismatch",
            severity="warning",
            subject=service.key,
            fact=text.partition(": ")[0].replace("the fabric manager is", "is"),
            message=text,
            expected=snapshot.of(Driver)["nvidia"].version,
            observed=service.version,
            unit="version",
            cause="one of the two was updated without the other",
            case="fabric manager",
            evidence=cited(service, "version"),
        )


RULES = (
    Rule(
        "nvlink-fabric-incomplete",
        Gpu,
        ("fabric_state", "fabric_status?", "fabric_faults?"),
        incomplete,
        belongs_to_fabric,
    ),
    Rule("nvlink-fabric-incomplete", Gpu, ("fabric_faults",), incomplete, shows_faults_alone),
    Rule("fabric-manager-down", Service, ("running", "Gpu?"), manager_down, is_needed_manager),
    Rule("fabric-manager-down", Service, ("running",), stopped_somewhere, is_stopped_somewhere),
    Rule("driver-mismatch", Service, ("version", "Gpu?"), version, may_be_mismatched),
)
