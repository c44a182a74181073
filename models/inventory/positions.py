"""Devices below equal PCIe switches: a switch with fewer devices than most equal switches has an empty position."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from ..facts.machine import Pci
from ..facts.pci_classes import kind_of
from .cohorts import carried, product_of_function, strict_majority
from .pci_tree import functions_above
from .snapshot import Snapshot, once_per_snapshot


@dataclass(frozen=True, slots=True)
class Gap:
    """A switch with fewer devices of a product than most equal switches."""

    switch: str  # address of its upstream port
    kind: str  # "gpu", "nic", "nvme"
    device: Pci  # a device of the product, below another switch
    have: int
    usual: int
    agree: int  # number of switches with the usual count
    switches: int


@once_per_snapshot
def gaps(snapshot: Snapshot) -> tuple[Gap, ...]:
    """All empty positions of the node."""
    return tuple(gap for group in _equal_switches(snapshot).values() for gap in _gaps(snapshot, group))


def is_regular(snapshot: Snapshot, kind: str) -> bool:
    """Whether all devices of a kind are below equal switches, as many below each. Then none of them is missing."""
    below = [counts for group in _equal_switches(snapshot).values() for counts in _counts(snapshot, group, kind)]
    listed = [one for one in snapshot.functions(kind) if not one.physfn and one.key.endswith(".0")]
    return (
        bool(below)
        and sum(sum(one.values()) for one in below) == len(listed)
        and not any(gap.kind == kind for gap in gaps(snapshot))
    )


def _equal_switches(snapshot: Snapshot) -> Mapping[Hashable, list[str]]:
    """Upstream ports with a GPU or NIC below, by product and depth."""
    functions = snapshot.of(Pci)
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for address, kinds in carried(snapshot).items():
        device = snapshot.topology.find(address)
        product = product_of_function(functions[address])
        if device and device.kind == "upstream-port" and product and kinds & {"gpu", "nic"}:
            groups[product, len(functions_above(address, functions))].append(address)
    return groups


def _gaps(snapshot: Snapshot, switches: list[str]) -> Iterator[Gap]:
    for kind in ("gpu", "nic", "nvme"):
        counts = _counts(snapshot, switches, kind)
        for product in {product: None for one in counts for product in one}:
            usual = strict_majority(one[product] for one in counts)
            agree = sum(one[product] == usual for one in counts)
            for switch, one in zip(switches, counts, strict=True):
                if usual is not None and one[product] < usual:
                    yield Gap(switch, kind, _example(snapshot, product), one[product], usual, agree, len(switches))


def _counts(snapshot: Snapshot, switches: list[str], kind: str) -> list[Counter[Hashable]]:
    """The number of devices of each product whose nearest switch is this one."""
    functions = snapshot.of(Pci)
    counts: dict[str, Counter[Hashable]] = {switch: Counter() for switch in switches}
    for function in snapshot.functions(kind):
        nearest = next((port for port in functions_above(function.key, functions) if port in counts), None)
        if nearest and not function.physfn and function.key.endswith(".0"):
            counts[nearest][_product(function)] += 1
    return list(counts.values())


def _example(snapshot: Snapshot, product: Hashable) -> Pci:
    return next(one for one in snapshot.of(Pci).values() if _product(one) == product)


def _product(function: Pci) -> Hashable:
    """The product; all NVMe disks are equal here: one machine has disks of several makers."""
    return "nvme" if kind_of(function) == "nvme" else product_of_function(function)
