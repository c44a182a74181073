"""Facts of one kind and key become one; where two sources disagree, the first is kept and the conflict recorded."""

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

# What changes from one moment to the next: sources that were asked one after the other need not agree.
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
    """Two sources that disagree on a field of one thing."""

    kept: Fact
    other: Fact
    field: str


def merge(facts: Iterable[Fact]) -> tuple[Facts, tuple[Conflict, ...]]:
    """Facts by kind and key, in the order in which they first came."""
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
    """The names of the fields that sources fill, and what gives all their values at once."""
    names = tuple(field.name for field in fields(kind) if field.name not in ("key", "cites"))
    return names, attrgetter(*names, "key")  # of one name it would give no tuple


def overlay(known: Fact, further: Fact) -> tuple[Fact, list[str]]:
    """`known`, its gaps filled from `further`; and the fields in which both speak and disagree."""
    differing: list[str] = []
    kind: Any = type(known)  # which mypy does not take for hashable, as its instances are not
    names, values = _fields(kind)
    said = dict(zip(names, values(known), strict=False))
    for name, theirs in zip(names, values(further), strict=False):
        mine = said[name]
        if mine is None:
            said[name] = theirs
        elif theirs is not None and mine != theirs and name not in _MOMENTARY.get(kind, ()):
            differing.append(name)
    # Not by replace(), which takes as long as all else here: hundreds of facts are merged in each cycle.
    return kind(key=known.key, cites={**further.cites, **known.cites}, **said), differing
