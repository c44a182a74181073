"""Access control (ACS) on the path between peers, and PCIe transfer sizes that differ from equal functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from ...facts.machine import Node, Pci
from ...facts.pci_classes import function_number, kind_of
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule
from ..core.wording import cited, function_name, location
from .direct_paths import peers

REDIRECTS = frozenset({"ReqRedir", "CmpltRedir"})
_SHOWN = 6  # ports that a message names
_SMALLEST_COHORT = 2


def on_metal(snapshot: Snapshot, node: Node) -> bool:
    """Select machines without a hypervisor where the ACS of a port between peers is known.

    A hypervisor needs ACS to redirect the traffic of its guests.
    """
    functions = snapshot.of(Pci)
    return not node.virtual and any(functions[port].acs is not None for pair in peers(snapshot) for port in pair.ports)


def redirected(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """One finding for all ports between peers that send their traffic up to the root complex."""
    functions = snapshot.of(Pci)
    hit = [pair for pair in peers(snapshot) if any(_redirects(functions[port]) for port in pair.ports)]
    ports = _redirecting(snapshot)
    if not ports:
        return
    switches = {functions[port].parent for port in ports}
    subject = str(next(iter(switches))) if len(switches) == 1 and switches <= functions.keys() else "node"
    first = hit[0]
    more = f" and {len(hit) - 1} more pair{'s' if len(hit) > 2 else ''}" if len(hit) > 1 else ""
    further = f" and {len(ports) - _SHOWN} more" if len(ports) > _SHOWN else ""
    on = sorted({name for port in ports for name in functions[port].acs or ()} & REDIRECTS, reverse=True)
    yield Finding(
        code="pcie-acs-redirect",
        severity="warning",
        subject=subject,
        subject_name=function_name(snapshot, functions[subject]) if subject in functions else None,
        fact=f"sends what devices below it exchange up to the root complex ({' and '.join(on)} on "
        f"{len(ports)} port{'s' if len(ports) > 1 else ''})",
        message=f"what {function_name(snapshot, first.a)} and {function_name(snapshot, first.b)}{more} send each other "
        f"goes up to the root complex: {' and '.join(on)} {'is' if len(on) == 1 else 'are'} on at "
        f"{', '.join(ports[:_SHOWN])}{further}",
        expected="off",
        observed=" ".join(on),
        cause="the firmware, or a kernel with the IOMMU on, switched ACS on at the ports between them",
        evidence=tuple(functions[port].cites["acs"] for port in ports[:_SHOWN] if "acs" in functions[port].cites),
    )


@once_per_snapshot
def _redirecting(snapshot: Snapshot) -> list[str]:
    """The ports between peers that send their traffic up to the root complex."""
    functions = snapshot.of(Pci)
    between = dict.fromkeys(port for pair in peers(snapshot) for port in pair.ports)
    return [port for port in between if _redirects(functions[port])]


def names_of_ports(snapshot: Snapshot) -> str | None:
    """The addresses of these ports for a command. None: too many for one line."""
    ports = _redirecting(snapshot)
    return " ".join(ports) if len(ports) <= _SHOWN else None


def _redirects(port: Pci) -> bool:
    return not REDIRECTS.isdisjoint(port.acs or ())


def has_cohort(snapshot: Snapshot, function: Pci) -> bool:
    """Select GPUs, NICs and NVMe controllers that are not virtual functions."""
    return kind_of(function) in ("gpu", "nic", "nvme") and function.physfn is None


def smaller_transfers(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """One of at least three equal functions has a smaller payload or read request size than all others."""
    cohort = _cohort(snapshot, function)
    differs = []
    for field, words in (("max_payload", "payload"), ("max_read_request", "read requests")):
        usual = {getattr(other, field) for other in cohort}
        own, other = getattr(function, field), next(iter(usual), None)
        if len(cohort) >= _SMALLEST_COHORT and len(usual) == 1 and other and own < other:
            differs.append((words, own, other))
    if not differs:
        return
    words, own, other = differs[0]
    texts = [f"{words} of {own} bytes, the other {len(cohort)} have {other}" for words, own, other in differs]
    yield Finding(
        code="pcie-path-bottleneck",
        severity="info",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        message=f"{function_name(snapshot, function)} is set to {'; '.join(texts)}",
        expected=other,
        observed=own,
        unit="bytes",
        basis=COHORT,
        expected_source=f"{len(cohort)} equal functions of this node",
        cause="its slot's settings in the firmware, or a driver or script that set it",
        case="transfer size",
        location=location(function, snapshot),
        evidence=cited(function, "max_payload"),
    )


def _cohort(snapshot: Snapshot, function: Pci) -> list[Pci]:
    """The other functions of the same product whose transfer sizes are known."""
    return [one for one in _by_product(snapshot).get(_product(function), ()) if one.key != function.key]


@once_per_snapshot
def _by_product(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Pci]]:
    """The functions of each product whose transfer sizes are known."""
    groups = defaultdict[Hashable, list[Pci]](list)
    for one in snapshot.of(Pci).values():
        if None not in (one.max_payload, one.max_read_request):
            groups[_product(one)].append(one)
    return groups


def _product(one: Pci) -> Hashable:
    return one.vendor, one.device, one.subvendor, one.subdevice, function_number(one.key), one.physfn is None


RULES = (
    Rule("pcie-acs-redirect", Node, ("Pci", "Pci.acs", "Pci.pci_class", "Pci.vendor"), redirected, on_metal),
    Rule("pcie-path-bottleneck", Pci, ("max_payload", "max_read_request"), smaller_transfers, has_cohort),
)
