"""GPUs: all there, and nothing that their driver logged."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..catalog.xids import xids
from ..facts import Event, Node, Pci
from ..gpu_facts import Gpu
from ..pci_classes import NVIDIA, kind_of
from ..report import Finding
from ..said import Evidence, NotChecked
from ..units import as_utc
from .lost import is_gpu
from .rule import Rule
from .words import location, missed, named

_EPOCH = 1e9  # seconds: below, a time counts from boot
_DAY = 86400.0


def counted(case: Case, node: Node) -> bool:
    """Where somebody says how many there should be. GPUs of one name come in machines of many sizes."""
    machine = case.machine
    return machine is not None and machine.gpus is not None and bool(machine.product or machine in case.site.machine)


def too_few(case: Case, node: Node) -> Iterator[Finding | NotChecked]:
    """Fewer GPUs than the machine type has."""
    machine = case.machine
    assert machine
    assert machine.gpus is not None
    listed = [f for f in case.of(Pci).values() if kind_of(f) == "gpu" and not f.physfn]
    seen = len(listed) if listed else len(case.of(Gpu))
    if seen < machine.gpus:
        yield Finding(
            code="gpu-missing",
            severity="critical",
            subject="node",
            message=f"{seen} GPUs, a {machine.name} has {machine.gpus}",
            expected=machine.gpus,
            observed=seen,
            unit="gpus",
            basis="site" if machine in case.site.machine else "profile",
            expected_source=machine.source,
            cause="a GPU that is not on the bus at all: power, seating, or taken out",
            evidence=(Evidence("PCI functions", ", ".join(f.key for f in listed) or "no GPU"),),
        )


def is_nvidia(case: Case, function: Pci) -> bool:
    """An NVIDIA GPU, or something of which was not read what it is."""
    return (function.vendor in (None, NVIDIA) and is_gpu(case, function)) and not function.lost


def without_driver(case: Case, function: Pci) -> Iterator[Finding]:
    """No NVIDIA driver is bound to the GPU: no job can use it, whatever its link says."""
    unsaid = function.driver is None and (case.origin == "dumps" or missed(case, "Pci.driver", function.key))
    if function.driver == "nvidia" or unsaid:
        return
    lent = (function.driver or "").startswith("vfio")
    held = f"is bound to {function.driver}" if function.driver else "has no driver"
    yield Finding(
        code="gpu-driver-failed",
        severity="info" if lent else "warning" if function.driver else "critical",
        subject=function.key,
        subject_name=named(case, function),
        message=f"{named(case, function)} {held}" + (": lent to a virtual machine" if lent else ""),
        expected="nvidia",
        observed=function.driver or "none",
        cause="handed through to a guest" if lent else "the driver is not loaded, failed to start, or another holds it",
        location=location(function),
        evidence=(function.cites.get("vendor", Evidence("driver", held)),),
    )


def xid(case: Case, event: Event) -> Iterator[Finding]:
    """The driver logged an Xid that needs an action. Those that a program causes are not faults of the node.

    Of one that came again, the last counts. A day later it is history: what it left behind has checks of its own.
    """
    meaning = xids().get(event.code or 0) if event.kind == "xid" else None
    alike = [e for e in case.of(Event).values() if (e.kind, e.code, e.subject) == ("xid", event.code, event.subject)]
    if meaning is None or meaning.severity is None or event is not alike[-1]:
        return
    dated = event.at is not None and event.at > _EPOCH
    old = dated and case.now - (event.at or 0) > _DAY
    times = f", {len(alike)} times" if len(alike) > 1 else ""
    yield Finding(
        code="gpu-xid",
        severity="info" if old else meaning.severity,
        subject=event.subject or "node",
        message=f"the driver logged Xid {event.code} for {event.subject}{times}: {meaning.says}",
        since=as_utc(event.at) if dated and event.at else None,
        observed=event.code,
        unit="xid",
        cause=meaning.says,
        remedy=meaning.action,
        expected_source=meaning.source,
        evidence=(event.cites.get("text", Evidence("kernel log", event.text or "")),),
    )


RULES = (
    Rule("gpu-missing", Node, ("Pci", "Pci.pci_class", "Pci.vendor", "Node.product", "Node.vendor"), too_few, counted),
    Rule("gpu-driver-failed", Pci, ("pci_class", "vendor", "driver?"), without_driver, is_nvidia),
    Rule("gpu-xid", Event, ("kind", "code"), xid),
)
