"""PCIe links in lists that show neither the upper end of a link nor what the device supports.

The other devices of the same product, or of the same kind if the list names no product, show what is usual.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci
from ...facts.pci_classes import function_number, kind_of, lowers_speed
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...facts.units import as_transfers
from ...inventory.cohorts import product_of_function
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.gpus import gpu_cohort, majority
from ..core.rule import Rule
from ..core.wording import cited, function_name, gap, location

_ALL_LANES, _OF_DRIVES = 16, 4  # of a slot, and of most drives
_NARROW = {"nvme": "storage-link-slow"}  # the code of a narrow link by kind of device
_PASTE = "sudo lspci -vv, all of it: it shows what both ends of each link support"
_LOAD = "look again while bytes move over the link"


def _is_listed(snapshot: Snapshot, function: Pci) -> bool:
    """Select functions of which a text shows the present link only."""
    node = snapshot.of(Node).get("node")
    shown = function.max_width is None and function.max_speed is None and function.downgraded is None
    alone = function.key not in snapshot.topology.link_below and kind_of(function) != "bridge"
    driver = function.key in _of_drivers(snapshot)
    known = snapshot.origin == "dumps" and not (node and node.virtual) and not driver
    first = "." not in function.key or function_number(function.key) == "0"
    return known and shown and alone and first and not function.lost


@once_per_snapshot
def _of_drivers(snapshot: Snapshot) -> frozenset[str | None]:
    """The addresses of GPUs as a driver shows them: gpu_pcie.py compares their links."""
    return frozenset(gpu.address for gpu in snapshot.of(Gpu).values())


def _alike(snapshot: Snapshot, function: Pci) -> Sequence[Pci]:
    """The listed functions of the same product, or of the same kind where the text names no product."""
    return _groups(snapshot).get(_group_of(function), ())


@once_per_snapshot
def _groups(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Pci]]:
    groups: dict[Hashable, list[Pci]] = defaultdict(list)
    for function in snapshot.of(Pci).values():
        if _is_listed(snapshot, function):
            groups[_group_of(function)].append(function)
    return groups


def _group_of(function: Pci) -> Hashable:
    return product_of_function(function), kind_of(function)


def _width_rule(code: str) -> Rule:

    def where(snapshot: Snapshot, function: Pci) -> bool:
        return _NARROW.get(kind_of(function), "pcie-link-narrow") == code and _is_listed(snapshot, function)

    def evaluate(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
        usual = majority(one.width for one in _alike(snapshot, function))
        width = function.width or 0
        if usual and width < usual:
            yield _finding(snapshot, function, code, "width", _lanes)
        elif width < _ALL_LANES and not (kind_of(function) == "nvme" and width == usual == _OF_DRIVES):
            why = f"the link has x{width}; the text does not say how many lanes the device supports"
            yield from gap(snapshot, "Pci.width", function.key, Reason.NO_EXPECTATION, why, _PASTE)

    return Rule(code, Pci, ("width",), evaluate, where)


def _is_slower(snapshot: Snapshot, function: Pci) -> bool:
    """Select listed functions that are slower than most of their kind."""
    usual = majority(one.speed for one in _alike(snapshot, function)) if _is_listed(snapshot, function) else None
    return usual is not None and (function.speed or usual) < usual


def _slow(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """The link is slower than most of its kind. GPUs and NVSwitches lower the speed of an idle link."""
    usual = majority(one.speed for one in _alike(snapshot, function)) or 0.0
    if lowers_speed(function) or kind_of(function) == "pci":
        why = f"at {as_transfers(function.speed or 0.0)}, most of its kind at {as_transfers(usual)}; it may be at rest"
        yield from gap(snapshot, "Pci.speed", function.key, Reason.AT_REST, why, _LOAD)
    else:
        yield _finding(snapshot, function, "pcie-link-slow", "speed", as_transfers)


def _finding(snapshot: Snapshot, function: Pci, code: str, field: str, word: Callable[[float], str]) -> Finding:
    alike = _alike(snapshot, function)
    usual = majority(getattr(one, field) for one in alike)
    value = getattr(function, field)
    agree = sum(getattr(one, field) == usual for one in alike)
    name = function_name(snapshot, function)
    return Finding(
        code=code,
        severity="warning",
        confidence="likely" if product_of_function(function) else "possible",
        subject=function.key,
        subject_name=name,
        fact=f"runs at {word(value)}, most of its kind at {word(usual or 0)}",
        message=f"{name} runs at {word(value)}, {agree} others of its kind at {word(usual or 0)}",
        expected=usual,
        observed=value,
        unit="lanes" if field == "width" else "transfers_per_second",
        basis=COHORT,
        expected_source=f"{agree} of {len(alike)} devices of the same kind in the text",
        cause="the link did not train as those of its kind: seating, slot, riser or cable; else a slot with less",
        location=location(function, snapshot),
        evidence=cited(function, field),
    )


def _lanes(value: float) -> str:
    return f"x{value:.0f}"


def _shows_no_load(snapshot: Snapshot, gpu: Gpu) -> bool:
    """Select GPUs slower than most equal GPUs, of which a text shows the present speed only, without the load."""
    shown = snapshot.origin == "dumps" and gpu.pcie_max_speed is None and gpu.utilization is None
    usual = majority(other.pcie_speed for other in gpu_cohort(snapshot, gpu)) if shown else None
    return usual is not None and (gpu.pcie_speed or usual) < usual


def _slower_gpu(snapshot: Snapshot, gpu: Gpu) -> Iterator[NotChecked]:
    """The link of a GPU is slower than those of most equal GPUs, and the text does not show whether it is at rest."""
    usual = majority(other.pcie_speed for other in gpu_cohort(snapshot, gpu))
    now, most = as_transfers(gpu.pcie_speed or 0.0), as_transfers(usual or 0.0)
    why = f"at {now}, most equal GPUs at {most}; it may be at rest"
    yield from gap(snapshot, "Gpu.pcie_speed", gpu.key, Reason.AT_REST, why, _LOAD)


RULES = (
    _width_rule("pcie-link-narrow"),
    _width_rule("storage-link-slow"),
    Rule("pcie-link-slow", Pci, ("speed",), _slow, _is_slower),
    Rule("pcie-link-slow", Gpu, ("pcie_speed",), _slower_gpu, _shows_no_load),
)
