"""GPUs: all there, and nothing that their driver logged."""

from __future__ import annotations

from collections.abc import Iterator

from ..case import Case
from ..catalog.xids import xids
from ..facts import Event, Gpu, Node, Pci
from ..pci_classes import kind_of
from ..report import Finding
from ..said import Evidence, NotChecked
from .rule import Rule


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


def xid(case: Case, event: Event) -> Iterator[Finding]:
    """The driver logged an Xid that needs an action. Those that a program causes are not faults of the node."""
    meaning = xids().get(event.code or 0) if event.kind == "xid" else None
    if meaning is None or meaning.severity is None:
        return
    yield Finding(
        code="gpu-xid",
        severity=meaning.severity,
        subject=event.subject or "node",
        message=f"the driver logged Xid {event.code} for {event.subject}: {meaning.says}",
        observed=event.code,
        unit="xid",
        cause=meaning.says,
        remedy=meaning.action,
        expected_source=meaning.source,
        evidence=(event.cites.get("text", Evidence("kernel log", event.text or "")),),
    )


RULES = (
    Rule("gpu-missing", Node, ("Pci", "Pci.pci_class", "Pci.vendor", "Node.product", "Node.vendor"), too_few, counted),
    Rule("gpu-xid", Event, ("kind", "code"), xid),
)
