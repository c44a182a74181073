"""What slow links and late ranks cost: how many times longer a collective takes, and a step of the job.

A communicator runs its collectives in each step. So the time between its first and last dump, divided by the number of
its collectives, is the part of a step that belongs to one of them. The lost time is compared with that. Computation at
the same time can hide some of it, so the cost is at most this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from .expected import Rate
from .log import Communicator
from .stragglers import Straggler

STEP = "step"  # the name of a step beside the names of operations
_MOST = 0.95  # share of a step that can be lost; the clocks of dumps are no better


def of_links(rates: Sequence[Rate]) -> Mapping[str, float]:
    """Operation -> how many times longer it takes; of a step only if the time of dumps is known."""
    found, lost = dict[str, float](), defaultdict[object, float](float)
    for one in rates:
        factor = one.missed.typical / one.observed if one.missed else 1.0
        found[one.kind.op] = max(found.get(one.kind.op, 1.0), round(factor, 3))
        if (whole := seconds_of(one.communicator)) is not None:
            lost[one.kind, one.shape] = max(lost[one.kind, one.shape], one.lost / whole)
    return {**found, **_step(sum(lost.values()))}


def of_stragglers(stragglers: Iterable[Straggler], communicators: Mapping[str, Communicator]) -> Mapping[str, float]:
    """The same for the time that other ranks wait. Each communicator waits for the same late rank."""
    whole = [(one, seconds_of(communicators[one.communicator])) for one in stragglers]
    return _step(max((one.total / seconds for one, seconds in whole if seconds), default=0.0))


def _step(lost: float) -> Mapping[str, float]:
    return {STEP: round(1 / (1 - lost), 3)} if 0 < lost < _MOST else {}


def seconds_of(communicator: Communicator) -> float | None:
    """The time of all collectives of a rank with what lies between them. None: there are too few dumps."""
    if len(communicator.marks) < 2:
        return None
    (first, began), (last, ended) = communicator.marks[0], communicator.marks[-1]
    operations = max(sum(each.count for each in one.series.values()) for one in communicator.members.values())
    return (ended - began) / (last - first) * operations if last > first else None
