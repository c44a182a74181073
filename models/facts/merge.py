"""Merge facts with the same kind and key. If sources disagree, a fault stays, else the first value. The conflict is
recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from .gpu import Gpu
from .machine import Mount, Pci
from .records import Fact
from .states import is_worse

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
            "utilization",
            "clock",
            "memory_clock",
            "clock_reasons",
            "power",
            "temperature",
            "temperature_margin",
            "memory_used",
            "ecc_corrected",
            "ecc_corrected_lifetime",
            "processes",
        }
    ),
}


class Conflict(Struct, frozen=True):
    """Two sources that disagree on a field of one fact."""

    kept: Fact
    other: Fact
    field: str


def merge(facts: Iterable[Fact]) -> tuple[Facts, tuple[Conflict, ...]]:
    """Facts by kind and key, in the order in which they first appear."""
    alike: dict[type[Fact], dict[str, list[Fact]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        alike[type(fact)][fact.key].append(fact)
    conflicts: list[Conflict] = []
    merged: dict[type[Fact], dict[str, Fact]] = {}
    for kind, by_key in alike.items():
        merged[kind] = {key: _merged(several, conflicts) for key, several in by_key.items()}
    return merged, tuple(conflicts)


def of(facts: Facts, kind: type[F]) -> Mapping[str, F]:
    """The facts of one kind, by key."""
    return cast("Mapping[str, F]", facts.get(kind, {}))


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Fact], tuple[Any, ...]]]:
    """The names of the fields that sources fill, and a function that returns all their values."""
    names = tuple(name for name in kind.__struct_fields__ if name not in ("key", "cites"))
    return names, attrgetter(*names, "key")  # with one name only it would return no tuple


def _merged(several: Sequence[Fact], conflicts: list[Conflict]) -> Fact:
    """The first fact with its empty fields filled from the others. Disagreements are added to `conflicts`."""
    first = several[0]
    if len(several) == 1:
        return first
    kind: Any = type(first)  # typed Any because mypy regards the class as unhashable, like its instances
    names, values = _fields(kind)
    merged = dict(zip(names, values(first), strict=False))
    cites = first.cites
    for fact in several[1:]:
        cites = {**fact.cites, **cites}
        for name, theirs in zip(names, values(fact), strict=False):
            if theirs is None:
                continue
            mine = merged[name]
            if mine is None:
                merged[name] = theirs
            elif mine != theirs:
                kept, other = next(one for one in several if getattr(one, name) == mine), fact
                if is_worse(kind, name, mine, theirs):
                    merged[name] = theirs
                    cites = {**cites, **{cited: at for cited, at in fact.cites.items() if cited == name}}
                    kept, other = fact, kept
                if name not in _MOMENTARY.get(kind, ()):
                    conflicts.append(Conflict(kept, other, name))
    # replace() would double the time of this function, and each cycle merges hundreds of facts.
    whole: Fact = kind(key=first.key, cites=cites, **merged)
    return whole
