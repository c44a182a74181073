"""The rank that keeps the others waiting: it arrives last, so its time inside a collective is the shortest.

A rank that is late in each of its communicators computes slowly or loads its input late. A rank that is late in some of
them waited before: for a late rank of another communicator, or for a slow link. The same holds for whole hosts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from .placement import Unit
from .timing import Table

if TYPE_CHECKING:
    from .timing import Times

RankOrHost: TypeAlias = Unit | str  # a GPU, or a host
NoStraggler: TypeAlias = Literal["none", "too few operations"]
Units: TypeAlias = Mapping[int, Unit]  # of each rank

_FEWEST = 8  # operations in which a late rank is the last
_SHARE = 0.5  # of the operations in which a late rank is the last
_ERRORS = 5  # standard deviations above the share of equal ranks
_WAITS = 0.1  # share of their time that the others wait
_LONGEST, _LONG = 0.9, 0.5  # a quantile of the waits, and the share of it from which on an operation counts
_AVERAGED = 0.25  # the same, if only means of windows are known


class Straggler(Struct, frozen=True):
    """A rank, or a host, that is late in a communicator. `waits`: seconds that others wait for it in one operation."""

    communicator: str
    member: RankOrHost
    ranks: tuple[int, ...]
    share: float  # of the operations in which it is the last
    waits: float
    of: float  # seconds that the operation takes for the others
    total: float  # seconds that the others waited in all operations
    first: int | None  # number of the first operation in which it is late; None: from the start


def straggling_rank(
    name: str, tables: Sequence[Table], units: Mapping[int, Unit], count: float, averaged: bool
) -> Straggler | NoStraggler:
    """The rank that is late in a communicator. `count`: operations of one rank."""
    return _straggler(name, tables, lambda rank: units[rank], count, averaged)


def straggling_host(
    name: str, tables: Sequence[Table], units: Mapping[int, Unit], count: float, averaged: bool
) -> Straggler | NoStraggler:
    """The host whose ranks are late in a communicator."""
    if len({unit.host for unit in units.values()}) < 2:
        return "none"
    return _straggler(name, tables, lambda rank: units[rank].host, count, averaged)


def _straggler(
    name: str, tables: Sequence[Table], member_of: Callable[[int], RankOrHost], count: float, averaged: bool
) -> Straggler | NoStraggler:
    import numpy as np

    tables = [one for one in tables if one.ranks == tables[0].ranks]
    owners = [member_of(rank) for rank in tables[0].ranks]
    names = sorted(set(owners), key=str)
    owner = np.array([names.index(one) for one in owners]) if len(names) < len(owners) else np.arange(len(owners))
    names = names if len(names) < len(owners) else owners
    times = np.concatenate([one.times for one in tables], axis=1)
    times = times[:, _waited(times)]
    last = np.bincount(owner[times.argmin(axis=0)], minlength=len(names))
    chosen = int(last.argmax())
    own = owner == chosen
    others = times[~own]
    if len(others) == 0:
        return "too few operations"
    usual = np.median(others, axis=0)
    waits, whole = float(np.median(usual - times[own].min(axis=0))), float(np.median(usual))
    if averaged:
        sure = len(others) > 1 and waits >= _AVERAGED * whole and waits > 2 * float(np.ptp(others))
    else:
        least = _least(times.shape[1], own.mean())
        if least > times.shape[1] and waits >= _WAITS * whole:
            return "too few operations"
        sure = last[chosen] >= least and waits >= _WAITS * whole
    if not sure:
        return "none"
    return Straggler(
        communicator=name,
        member=names[chosen],
        ranks=tuple(rank for rank, one in zip(tables[0].ranks, own.tolist(), strict=True) if one),
        share=float(last[chosen]) / times.shape[1],
        waits=waits,
        of=whole,
        total=waits * count * times.shape[1] / sum(len(one.numbers) for one in tables),
        first=_first(tables[0], own),
    )


def _waited(times: Times) -> Times:
    """Which operations count: those with the longer waits. Input is late once in a step of many operations."""
    import numpy as np

    waits = np.median(times, axis=0) - times.min(axis=0)
    chosen: Times = waits >= _LONG * np.quantile(waits, _LONGEST)
    return chosen


def _least(count: int, chance: float) -> float:
    """The number of operations in which a late rank is the last. `chance`: that an equal one is."""
    return max(_FEWEST, _SHARE * count, count * chance + _ERRORS * math.sqrt(count * chance * (1 - chance)))


def _first(table: Table, own: Times) -> int | None:
    """The number of the operation from which on it is late, if it was not at first."""
    import numpy as np

    counted = _waited(table.times)
    total = np.cumsum(np.where(own[table.times.argmin(axis=0)] & counted, 1, -1))
    lowest = int(total.argmin())
    return table.numbers[lowest + 1] if total[lowest] <= -_FEWEST and lowest + 1 < len(total) else None
