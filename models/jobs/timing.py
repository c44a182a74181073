"""Times of the operations of a communicator, rank by rank.

All ranks leave a collective at about the same time. A rank that arrives early waits inside it, so its time is longer
than that of the rank that arrives last. The shortest time of all ranks is the time that the links took.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from .log import Communicator, Kind

if TYPE_CHECKING:
    from numpy import floating
    from numpy.typing import NDArray

    Times: TypeAlias = NDArray[floating[Any]]

FEWEST = 8  # operations; of fewer the median says little
_SPREAD = 1.4826  # standard deviations of a normal distribution in one median absolute deviation
_MEDIAN = 1.2533  # error of a median, in errors of a mean
_CHANGED = 1.15  # ratio of the times after and before a change
_ERRORS = 6  # standard errors that a change must exceed: each position is tried
_CHANCE = 1e-4  # probability of a random change that large


class Table(Struct, frozen=True):
    """Times in seconds, one row per rank and one column per operation."""

    ranks: tuple[int, ...]
    numbers: tuple[int, ...]
    times: Times


class Taken(Struct, frozen=True):
    """What the links took for one kind of operation."""

    seconds: float  # median
    error: float  # standard error of the median, as a share of it
    count: int  # operations of all ranks together
    columns: int  # operations whose times were compared
    complete: bool  # all ranks have times
    changed: int | None = None  # number of the operation from which on it is slower
    before: float | None = None  # seconds before that


def table_of(communicator: Communicator, kind: Kind) -> Table | None:
    """The times of one kind of operation. None: no two ranks have the times of the same operation."""
    import numpy as np  # 0.1 s; commands that read no job do not need it

    found = {
        rank: dict(zip(series.numbers, series.times, strict=True))
        for rank, member in sorted(communicator.members.items())
        if not member.duplicate and (series := member.series.get(kind)) is not None
    }
    if len(found) < 2:
        return None
    most = max(map(len, found.values()))
    common = sorted(number for number, ranks in _counts(list(found.values())).items() if ranks == len(found))
    if len(common) < min(FEWEST, most):
        return None
    times = np.array([[one[number] for number in common] for one in found.values()], float) / 1e6
    return Table(tuple(found), tuple(common), times)


def _counts(rows: Sequence[dict[int, float]]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for row in rows:
        for number in row:
            counts[number] = counts.get(number, 0) + 1
    return counts


def taken_of(communicator: Communicator, kind: Kind, table: Table) -> Taken:
    """The time that the links took: the shortest of each operation. After a change, the time since then."""
    import numpy as np

    shortest = table.times.min(axis=0)
    count = sum(one.series[kind].count for one in communicator.members.values() if kind in one.series)
    change = _change(shortest)
    after = shortest if change is None else shortest[change:]
    middle = float(np.median(after))
    return Taken(
        seconds=middle,
        error=_error(after),
        count=count,
        columns=len(table.numbers),
        complete=len(table.ranks) == communicator.n_ranks and not communicator.inconsistent,
        changed=None if change is None else table.numbers[change],
        before=None if change is None else float(np.median(shortest[:change])),
    )


def _error(times: Times) -> float:
    """The standard error of the median, as a share of it."""
    import numpy as np

    middle = np.median(times)
    return float(_MEDIAN * _SPREAD * np.median(np.abs(times - middle)) / middle / np.sqrt(len(times)))


def _change(times: Times) -> int | None:
    """The position from which on the operations take longer (Pettitt's test); None: no such change."""
    import numpy as np

    count = len(times)
    if count < 2 * FEWEST:
        return None
    places = np.argsort(np.argsort(times, kind="stable"), kind="stable") + 1
    sums = 2 * np.cumsum(places) - np.arange(1, count + 1) * (count + 1)
    position = int(np.argmin(sums)) + 1
    if not FEWEST <= position <= count - FEWEST:
        return None
    chance = 2 * np.exp(-6.0 * float(sums[position - 1]) ** 2 / (count**3 + count**2))
    before, after = times[:position], times[position:]
    ratio = float(np.median(after) / np.median(before))
    error = float(np.hypot(_error(before), _error(after)))
    return position if chance < _CHANCE and ratio > _CHANGED and np.log(ratio) > _ERRORS * error else None
