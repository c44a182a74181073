"""A fault of a node: the edit of its records, the loss of its copies, and the finding that must result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy.edits import Edit, names_of, together
from bench.accuracy.healthy_nodes import HealthyNode
from bench.accuracy.measured import Loss
from linkgauge.models.facts.machine import Net, Node, Pci, Port
from linkgauge.models.facts.pci_classes import kind_of
from linkgauge.models.facts.records import Observation
from linkgauge.models.inventory.pci_tree import functions_above

T = TypeVar("T")
# Kinds that are no fault if all equal devices have them: equal firmware, and no processor at all.
_SINGLE = frozenset({"firmware of a NIC differs", "firmware of a disk differs", "removal of a processor"})


class Fault(Struct, frozen=True):
    """A finding must have this code and one of these subjects.

    Several subjects mean that the report cannot distinguish them.
    """

    code: str
    subjects: frozenset[str]
    about: frozenset[str]  # affected devices, by all their names; two faults of one node share none
    edit: Edit = list
    loss: Loss = Loss()
    size: float | None = None  # lost share of a rate
    info: bool = False  # the finding has severity info

    @property
    def beside(self) -> tuple[tuple[str, str], ...]:
        """Code and subject of a further finding: after an Xid, the driver asks for a restart of the node."""
        return ((self.code, "node"),) if "node" in self.about else ()


# Draws a place, and a size if the fault has one. None: the node has no such place.
Kind: TypeAlias = Callable[[HealthyNode, Random], Fault | None]


def drawn(chance: Random, places: Sequence[T]) -> T | None:
    """One of the places, or None if there are none."""
    return chance.choice(places) if places else None


def is_guest(node: HealthyNode) -> bool:
    """Whether a hypervisor may have invented the state."""
    facts = node.snapshot.of(Node).get("node")
    return bool(facts and facts.virtual)


def below(node: HealthyNode, address: str) -> frozenset[str]:
    """All names of a function and of the functions below it."""
    functions = node.snapshot.of(Pci)
    keys = [key for key in functions if key == address or address in functions_above(key, functions)]
    return frozenset(name for key in (address, *keys) for name in names_of(node.snapshot, key))


def both_ways(a: str, b: str, left: float) -> Loss:
    """A link that keeps the share `left` of its rate in both directions."""
    return Loss({(a, b): left, (b, a): left})


class Case(Struct, frozen=True):
    """One fault. A finding must have one of these codes and one of these subjects."""

    kind: str
    place: str
    edit: Edit
    codes: frozenset[str]
    subjects: frozenset[str]
    words: tuple[str, ...] = ()  # one of them is in the name of the value in coverage or in the gap
    option: str = ""  # the size of the fault
    past: tuple[Observation, ...] = ()
    devices: int = 1
    info: bool = False  # severity info is enough
    about: frozenset[str] = frozenset()  # the affected devices by all names, if more than the subjects


Cases: TypeAlias = Iterator[Case]


def group_of(node: HealthyNode, place: str) -> str:
    """The equal devices that a place belongs to: the product of its PCI function, else its name without numbers."""
    snapshot, first = node.snapshot, place.partition("/")[0]
    port, net = snapshot.of(Port).get(place), snapshot.of(Net).get(place)
    names = (place, first, port.device if port else None, net.address if net else None)
    found = (snapshot.topology.find(name) for name in names if name)
    function = next((snapshot.of(Pci)[one.id] for one in found if one and one.id in snapshot.of(Pci)), None)
    tail = place.partition("/")[2].rstrip("0123456789")
    if function is None:
        return f"{first.rstrip('0123456789')}/{tail}"
    ids = (function.vendor, function.device, function.subdevice)
    return f"{kind_of(function)} {':'.join(f'{number or 0:04x}' for number in ids)}/{tail}"


def whole_groups(node: HealthyNode, cases: Iterable[Case]) -> Cases:
    """The same fault of all equal devices at once, for each kind, size and group."""
    groups: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.kind, case.option, group_of(node, case.place)].append(case)
    for (kind, _, group), several in groups.items():
        part = node.origin == "dumps" and kind.startswith("removal")  # a dump without any device is of another thing
        if len(several) > 1 and kind not in _SINGLE and not part:
            yield replace(
                several[0],
                kind=f"{kind}, all",
                place=f"{len(several)} of {group}",
                edit=together(*(case.edit for case in several)),
                subjects=frozenset({"node"}).union(*(case.subjects for case in several)),
                past=tuple(one for case in several for one in case.past),
                devices=len(several),
            )
