"""Copies whose path is not known, compared with the complete links of the GPU product.

A flow that reaches this rate proves complete links: each hop of its path is at least as fast. If no flow reaches it,
the machine can be of an older generation or the path can be another one, so no rate is expected. The path is not known
in dumps. In virtual machines it is not known between processor and GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from ..catalog.gpus import Product, product_of
from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..facts.reason import Reason
from ..facts.records import Flow, NotChecked
from ..facts.units import as_gigabytes
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import COHORT, Expectation, Level
from .best_rates import best_observations
from .efficiency import Attainable, attainable

_HOW_IN_DUMPS = "nvidia-smi nvlink -s, nvidia-smi topo -m and lspci -vv"
_HOW = "describe the machine in the site file, or run linkgauge accept on a node that is good"
_LONG = 16 << 20  # bytes: the start of a shorter copy takes much of its time
# Of the usual rate. The directions of a link differ, and tests: p2pBandwidthLatencyTest reaches less than nvbandwidth.
_FAR = 0.75
_ABOVE = 1.05  # times the rated rate: a sum of two directions or a rate of a cache


class _Link(Struct, frozen=True):
    """The complete link of a product, between GPUs or to the host: its rated rate, and the shares that are reached."""

    product: Product
    between: bool
    grade: str
    able: float
    share: Attainable


def by_product(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The rate of the product's complete links, if this flow or an equal one of the text reaches it."""
    link = _link_of(snapshot, flow)
    if link and (link.product.name, link.between) in _reached(snapshot):
        typical, high = link.share.typical * link.able, link.share.high * link.able
        source = f"the complete {link.grade} of a {link.product.name} ({link.product.source}); {link.share.source}"
        low = _FAR * typical
        yield Expectation(basis="capability", low=low, typical=typical, high=max(high, link.able), source=source)


def unproven(snapshot: Snapshot, measured: Iterable[Level]) -> Iterator[NotChecked]:
    """One record for each kind of copies whose rates do not show that their links are complete."""
    reasons = set[str]()
    for level in measured:
        link = _link_of(snapshot, level.flow)
        why = _lack(snapshot, level.flow, link, level) if link else None
        if why and why not in reasons:
            reasons.add(why)
            how = _HOW_IN_DUMPS if snapshot.origin == "dumps" else _HOW
            yield NotChecked(
                what=f"rate of {level.op}", subject=level.flow.subject, reason=Reason.INCOMPLETE, detail=why, how=how
            )


def _lack(snapshot: Snapshot, flow: Flow, link: _Link, level: Level) -> str | None:
    """What is missing: equal flows below the product have only each other, and a low flow has no equal ones."""
    usual = f"the complete {link.grade} of a {link.product.name} gives {as_gigabytes(link.share.typical * link.able)}"
    seen = level.observed or 0.0
    if (link.product.name, link.between) not in _reached(snapshot):
        bases = {one.basis for one in level.expected}
        if not bases and snapshot.origin != "dumps":
            return f"{flow.subject} reaches {as_gigabytes(seen)}, {usual}, and the links between are hidden"
        return f"equal flows have equal rates, and {usual}" if bases == {COHORT} else None
    if level.expected != tuple(by_product(snapshot, flow)) or seen >= link.share.low * link.able:
        return None
    return f"{flow.subject} reaches {as_gigabytes(seen)}, {usual}, and no equal flows show which rate is usual here"


@once_per_snapshot
def _reached(snapshot: Snapshot) -> Collection[tuple[str, bool]]:
    """Products with a flow at the rate of the complete link. True: of the links between GPUs, False: to the host."""
    found = set[tuple[str, bool]]()
    for flow, seen in best_observations(snapshot).items():
        link = _link_of(snapshot, flow)
        if link and link.share.low * link.able <= seen.value <= _ABOVE * link.able:
            found.add((link.product.name, link.between))
    return found


def _link_of(snapshot: Snapshot, flow: Flow) -> _Link | None:
    short = flow.size is not None and flow.size < _LONG
    if flow.op != "copy" or len(flow.ends) != 2 or flow.via or flow.beside or short:
        return None
    gpus = [end for end in flow.ends if not _is_host(snapshot, end)]
    of = [_product(snapshot, end) for end in gpus]
    product = of[0] if of else None
    if product is None or any(other != product for other in of) or _is_far(snapshot, flow, gpus[0]):
        return None
    grade, able = _link(product, between=len(of) == 2, bridge=_has_bridge(snapshot, flow, product))
    share = attainable(grade, flow.op, "host" if _is_host(snapshot, flow.ends[1]) else "device") if grade else None
    return _Link(product, len(of) == 2, grade, able, share) if share else None


def _is_host(snapshot: Snapshot, end: str) -> bool:
    return end == "host" or snapshot.topology.kind(end) == "numa"


def _is_far(snapshot: Snapshot, flow: Flow, gpu: str) -> bool:
    """Whether the memory may be that of another processor, whose copies are slower."""
    memories = [one.id for one in snapshot.topology.devices if one.kind == "numa"]
    device = snapshot.topology.find(gpu)
    near = f"numa{device.numa_node}" if device and device.numa_node is not None else ""
    return len(memories) > 1 and any(end in memories and end != near for end in flow.ends)


def _product(snapshot: Snapshot, end: str) -> Product | None:
    device = snapshot.topology.find(end)
    names = (end, device.id, *device.aliases) if device else (end,)
    gpu = next((snapshot.of(Gpu)[name] for name in names if name in snapshot.of(Gpu)), None)
    return product_of(gpu, snapshot.of(Pci)) if gpu else None


def _has_bridge(snapshot: Snapshot, flow: Flow, product: Product) -> bool:
    """Whether the rate shows an NVLink bridge: it is above that of PCIe. Other pairs of the machine may have none."""
    seen = best_observations(snapshot).get(flow)
    return seen is not None and seen.value > _ABOVE * product.pcie_rate


def _link(product: Product, between: bool, bridge: bool) -> tuple[str, float]:
    """Grade and rated rate of the links to other GPUs or to the host; an empty grade where they may be absent."""
    if not between:
        able = product.pcie_rate
        return ("", 0.0) if product.c2c_rate else (f"pcie{product.pcie}x{product.width}", able)
    if (product.bridged and not bridge) or not product.links or not product.link_rate or product.link_version is None:
        return "", 0.0
    return f"{product.link_kind}{product.link_version}", product.links * product.link_rate
