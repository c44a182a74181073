"""Merge facts with the same kind and key. If sources disagree, the first value stays and the conflict is recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast

from .gpu import Gpu
from .machine import Mount, Pci
from .records import Fact

Facts: TypeAlias = Mapping[type[Fact], Mapping[str, Fact]]
F = TypeVar("F", bound=Fact)

# Fields that change from one moment to the next. Sources are read one after the other, so these values may differ.
_MOMENTARY: Mapping[type[Fact], frozenset[str]] = {
    Pci: frozenset({"speed"}),
    Mount: frozenset({"free"}),
    Gpu: frozenset(
        {
            "pcie_speed",
            "performance_state",
            "clock",
            "memory_clock",
            "clock_reasons",
            "power",
            "temperature",
            "memory_used",
            "ecc_corrected",
            "ecc_corrected_lifetime",
            "processes",
        }
    ),
}


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that disagree on a field of one fact."""

    kept: Fact
    other: Fact
    field: str


def merge(facts: Iterable[Fact]) -> tuple[Facts, tuple[Conflict, ...]]:
    """Facts by kind and key, in the order in which they first appear."""
    merged: dict[type[Fact], dict[str, Fact]] = defaultdict(dict)
    conflicts: list[Conflict] = []
    for fact in facts:
        known = merged[type(fact)].get(fact.key)
        if known is None:
            merged[type(fact)][fact.key] = fact
            continue
        merged[type(fact)][fact.key], differing = overlay(known, fact)
        conflicts += [Conflict(known, fact, name) for name in differing]
    return dict(merged), tuple(conflicts)


def of(facts: Facts, kind: type[F]) -> Mapping[str, F]:
    """The facts of one kind, by key."""
    return cast("Mapping[str, F]", facts.get(kind, {}))


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Fact], tuple[Any, ...]]]:
    """The names of the fields that sources fill, and a function that returns all their values."""
    names = tuple(field.name for field in fields(kind) if field.name not in ("key", "cites"))
    return names, attrgetter(*names, "key")  # with one name only it would return no tuple


def overlay(known: Fact, further: Fact) -> tuple[Fact, list[str]]:
    """`known` with its empty fields filled from `further`, and the names of the fields on which both disagree."""
    kind: Any = type(known)  # typed Any because mypy regards the class as unhashable, like its instances
    names, values = _fields(kind)
    merged_values = dict(zip(names, values(known), strict=False))
    differing: list[str] = []
    for name, theirs in zip(names, values(further), strict=False):
        if theirs is None:
            continue
        mine = merged_values[name]
        if mine is None:
            merged_values[name] = theirs
        elif mine != theirs and name not in _MOMENTARY.get(kind, ()):
            differing.append(name)
    # replace() would double the time of this function, and each cycle merges hundreds of facts.
    return kind(key=known.key, cites={**further.cites, **known.cites}, **merged_values), differing
