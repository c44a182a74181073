"""Cohorts: equal devices in equal positions of a node. Most of them show what each of them should be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from ..facts.machine import Pci, Rdma
from ..facts.pci_classes import card_of, kind_of
from .pci_tree import functions_above
from .snapshot import Snapshot, once_per_snapshot

V = TypeVar("V", bound=Hashable)
FEWEST = 3  # devices with the same value; two of three may be built differently
_CARRIERS = frozenset({"gpu", "nic", "nvme", "nvswitch", "storage"})


def strict_majority(values: Iterable[V | None]) -> V | None:
    """The value of more than half of the known values, if at least three devices have it."""
    known = [value for value in values if value is not None]
    if len(known) < FEWEST:
        return None
    best = max(dict.fromkeys(known), key=known.count)
    agree = known.count(best)
    return best if agree >= FEWEST and 2 * agree > len(known) else None


def cohort_of(snapshot: Snapshot, function: Pci) -> Sequence[Pci]:
    """The functions of the same product in equal positions, including this one. Empty if the product is not known."""
    if function.key in snapshot.topology.link_below and not function.lost:
        return _cohorts(snapshot).get(function.key, ())
    return _by_position(snapshot).get(_position(snapshot, function), ()) if product_of_function(function) else ()


@once_per_snapshot
def _cohorts(snapshot: Snapshot) -> Mapping[str, Sequence[Pci]]:
    """The cohort of each function on a link, by PCI address."""
    return {one.key: cohort for cohort in _by_position(snapshot).values() for one in cohort}


class Usual(Struct, frozen=True):
    """The value of most devices of a cohort."""

    value: float
    agree: int  # devices with this value
    devices: int


def usual_values(snapshot: Snapshot, of: Callable[[Pci], float | None]) -> Mapping[str, Usual]:
    """The value that most equal devices in equal positions have, by PCI address. Absent: they do not agree."""
    found: dict[str, Usual] = {}
    for cohort in _by_position(snapshot).values():
        values = [of(one) for one in cohort]
        most = strict_majority(values)
        if most is not None:
            usual = Usual(most, values.count(most), len(cohort))
            found |= {one.key: usual for one in cohort}
    return found


@once_per_snapshot
def _by_position(snapshot: Snapshot) -> Mapping[Hashable, Sequence[Pci]]:
    groups: dict[Hashable, list[Pci]] = defaultdict(list)
    for address in snapshot.topology.link_below:
        function = snapshot.of(Pci)[address]
        if product_of_function(function) and not function.lost:
            groups[_position(snapshot, function)].append(function)
    return groups


def _position(snapshot: Snapshot, function: Pci) -> Hashable:
    """The product, the products of the ports above it, and the kinds of devices below it.

    Boards with the same NIC chip differ in the board ID and in the number of functions. The ports of one PCIe block
    have device ids that differ only in the last digit (Intel 352a to 352d; pci.ids).
    """
    functions = snapshot.of(Pci)
    above = [functions[address] for address in ports_above(snapshot)[function.key]]
    ports = tuple((port.vendor, None if port.device is None else port.device >> 4) for port in above)
    board = _boards(snapshot).get(function.key), _functions(snapshot)[card_of(function.key)]
    return product_of_function(function), board, ports, carried(snapshot).get(function.key, frozenset())


def product_of_function(function: Pci) -> Hashable:
    """The ids of the product; in texts without ids its name. None: not known."""
    if function.device is None:
        return function.name
    return function.vendor, function.device, function.subvendor, function.subdevice


@once_per_snapshot
def _boards(snapshot: Snapshot) -> Mapping[str, str | None]:
    """The board IDs of NICs, by PCI address."""
    return {nic.address: nic.board_id for nic in snapshot.of(Rdma).values() if nic.address}


@once_per_snapshot
def _functions(snapshot: Snapshot) -> Counter[str]:
    """The number of physical functions of each card."""
    return Counter(card_of(key) for key, function in snapshot.of(Pci).items() if not function.physfn)


@once_per_snapshot
def ports_above(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    """The functions above each function, nearest first."""
    functions = snapshot.of(Pci)
    return {address: functions_above(address, functions) for address in functions}


@once_per_snapshot
def carried(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """The kinds of devices with job traffic below each port: {"0000:15:00.0": {"gpu", "nic"}}."""
    functions = snapshot.of(Pci)
    kinds: dict[str, set[str]] = defaultdict(set)
    for function in functions.values():
        kind = kind_of(function)
        if kind in _CARRIERS and not function.physfn:
            for port in ports_above(snapshot)[function.key]:
                kinds[port].add(kind)
    return {port: frozenset(below) for port, below in kinds.items()}
