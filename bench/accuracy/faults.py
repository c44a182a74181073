"""A fault of a node: what its sources say then, what copies lose by it, and what must be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias, TypeVar

from bench.accuracy.beds import Bed
from bench.accuracy.edits import Edit, names_of
from bench.accuracy.measured import Loss
from linkgauge.models.facts.machine import Node, Pci
from linkgauge.models.inventory.pci_tree import functions_above

T = TypeVar("T")


@dataclass(frozen=True)
class Fault:
    """The code that must be found, on one of the subjects: more than one where nobody could tell them apart."""

    code: str
    subjects: frozenset[str]
    about: frozenset[str]  # devices, by all their names; two faults of one node have none in common
    edit: Edit = list
    loss: Loss = Loss()
    size: float | None = None  # share of its rate that something loses
    info: bool = False  # it is worth knowing, no more


# Draws a place, and a size where there is one; None where the node has no such place.
Kind: TypeAlias = Callable[[Bed, Random], Fault | None]


def drawn(chance: Random, places: Sequence[T]) -> T | None:
    """One of the places, if there is one."""
    return chance.choice(places) if places else None


def is_guest(bed: Bed) -> bool:
    """Where what is seen may be a hypervisor's invention."""
    node = bed.snapshot.of(Node).get("node")
    return bool(node and node.virtual)


def below(bed: Bed, address: str) -> frozenset[str]:
    """A function and what hangs below it, by all names."""
    functions = bed.snapshot.of(Pci)
    keys = [key for key in functions if key == address or address in functions_above(key, functions)]
    return frozenset(name for key in (address, *keys) for name in names_of(bed.snapshot, key))


def both_ways(a: str, b: str, left: float) -> Loss:
    """A link that carries so much of its rate."""
    return Loss({(a, b): left, (b, a): left})
