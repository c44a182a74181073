"""A fault of a node: the edit of its records, the loss of its copies, and the finding that must result."""

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


# Draws a place, and a size if the fault has one. None: the node has no such place.
Kind: TypeAlias = Callable[[Bed, Random], Fault | None]


def drawn(chance: Random, places: Sequence[T]) -> T | None:
    """One of the places, or None if there are none."""
    return chance.choice(places) if places else None


def is_guest(bed: Bed) -> bool:
    """Whether a hypervisor may have invented the state."""
    node = bed.snapshot.of(Node).get("node")
    return bool(node and node.virtual)


def below(bed: Bed, address: str) -> frozenset[str]:
    """All names of a function and of the functions below it."""
    functions = bed.snapshot.of(Pci)
    keys = [key for key in functions if key == address or address in functions_above(key, functions)]
    return frozenset(name for key in (address, *keys) for name in names_of(bed.snapshot, key))


def both_ways(a: str, b: str, left: float) -> Loss:
    """A link that keeps the share `left` of its rate in both directions."""
    return Loss({(a, b): left, (b, a): left})
