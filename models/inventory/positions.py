"""Devices below equal PCIe switches: a switch with fewer devices than most equal switches has an empty position."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping

from msgspec import Struct

from ..facts.machine import Pci
from ..facts.pci_classes import kind_of
from .cohorts import FEWEST, carried, ports_above, product_of_function, strict_majority
from .snapshot import Snapshot, once_per_snapshot

_KINDS = ("gpu", "nic", "nvme")
_MOST = 0.75  # share of the switches that must have the usual number; one of four may have an empty position


class EmptyPosition(Struct, frozen=True):
    """A switch with fewer devices of a product than most equal switches."""

    switch: str  # address of its upstream port
    kind: str  # "gpu", "nic", "nvme"
    device: Pci  # a device of the product, below another switch
    have: int
    usual: int
    agree: int  # number of switches with the usual count
    switches: int


@once_per_snapshot
def empty_positions(snapshot: Snapshot) -> tuple[EmptyPosition, ...]:
    """All empty positions of the node."""
    return tuple(gap for group in _equal_switches(snapshot).values() for gap in _empty_positions(snapshot, group))


def has_equal_switches(snapshot: Snapshot) -> bool:
    """Whether the node has switches that can show what each of them should have."""
    return any(len(group) >= FEWEST for group in _equal_switches(snapshot).values())


def is_regular(snapshot: Snapshot, kind: str) -> bool:
    """Whether all devices of a kind are below equal switches, as many below each and as many near each NUMA node.

    Then none of them is missing.
    """
    listed = sum(1 for one in snapshot.functions(kind) if not one.physfn and one.key.endswith(".0"))
    return any(
        _has_all(_counts(snapshot, group), kind, listed) and _is_even(snapshot, group)
        for group in _equal_switches(snapshot).values()
    )


def _is_even(snapshot: Snapshot, switches: list[str]) -> bool:
    """Whether as many switches are near each NUMA node."""
    near = Counter(snapshot.of(Pci)[switch].numa for switch in switches)
    return len(set(near.values())) == 1


def _has_all(counts: Mapping[str, Counter[tuple[str, Hashable]]], kind: str, listed: int) -> bool:
    numbers = [sum(number for (of, _), number in one.items() if of == kind) for one in counts.values()]
    return sum(numbers) == listed and strict_majority(numbers) == min(numbers)


def _equal_switches(snapshot: Snapshot) -> Mapping[Hashable, list[str]]:
    """Upstream ports with a GPU or NIC below, by product and depth."""
    functions = snapshot.of(Pci)
    groups: dict[Hashable, list[str]] = defaultdict(list)
    for address, kinds in carried(snapshot).items():
        device = snapshot.topology.find(address)
        product = product_of_function(functions[address])
        if device and device.kind == "upstream-port" and product and kinds & {"gpu", "nic"}:
            groups[product, len(ports_above(snapshot)[address])].append(address)
    return groups


def _empty_positions(snapshot: Snapshot, switches: list[str]) -> Iterator[EmptyPosition]:
    """Switches of another role have other devices, or several of them have fewer devices in the same way."""
    counts = _counts(snapshot, switches)
    if len({frozenset(one.items()) for one in counts.values()}) == 1:
        return
    for switch, own in counts.items():
        alike = [one for one in counts.values() if own.keys() <= one.keys()]
        for kind, product in {key: None for one in alike for key in one}:
            usual = strict_majority(one[kind, product] for one in alike)
            agree = sum(one[kind, product] == usual for one in alike)
            single = sum(one == own for one in alike) == 1
            if usual is not None and own[kind, product] < usual and single and agree >= _MOST * len(alike):
                example = _example(snapshot, product)
                yield EmptyPosition(switch, kind, example, own[kind, product], usual, agree, len(alike))


def _counts(snapshot: Snapshot, switches: list[str]) -> Mapping[str, Counter[tuple[str, Hashable]]]:
    """The number of devices of each kind and product whose nearest switch is this one, by switch."""
    counts: dict[str, Counter[tuple[str, Hashable]]] = {switch: Counter() for switch in switches}
    for kind in _KINDS:
        for function in snapshot.functions(kind):
            nearest = next((port for port in ports_above(snapshot)[function.key] if port in counts), None)
            if nearest and not function.physfn and function.key.endswith(".0"):
                counts[nearest][kind, _product(function)] += 1
    return counts


def _example(snapshot: Snapshot, product: Hashable) -> Pci:
    return next(one for one in snapshot.of(Pci).values() if _product(one) == product)


def _product(function: Pci) -> Hashable:
    """The product; all NVMe disks are equal here: one machine has disks of several makers."""
    return "nvme" if kind_of(function) == "nvme" else product_of_function(function)
