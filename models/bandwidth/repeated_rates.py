"""Repeated measurements of equal flows: the middle of each series, its error, and what the series decide.

One measurement of a copy scatters by up to 2 %, so it cannot show a loss of 3 %. The mean of n measurements scatters
less by the square root of n. A group-sequential test looks at the series after each batch of measurements and decides:
the flow is slow, it is as fast as its equals, or it must be measured again. The false rate holds for all looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from ..facts.averages import mean, median
from ..facts.records import COLLECTIVES, EGRESS, Flow, Observation
from ..inventory.snapshot import Snapshot, once_per_snapshot
from .plausibility import implausible

Decision: TypeAlias = Literal["slow", "equal", "again"]
BATCH = 4  # measurements of each flow between two looks
MOST = 1 + 6 * BATCH  # the last measurements that count; a loss of 3 % at a scatter of 2 % needs about 20
FEWEST = BATCH  # measurements of a series; with fewer, the highest rate counts
LOST = 0.03  # the smallest loss that is looked for
# Standard errors. SURE: chance alone reaches it once in 300,000 comparisons, and a node with 72 flows and 6 looks makes
# 432 of them. UNLIKELY: a flow that loses LOST is called equal in at most 2 % of looks.
SURE, UNLIKELY = 4.5, 2.0
CHANGED = 3.5  # standard errors; without a change, chance alone ends one series of 2,000
_TRIMMED = 1.1  # standard error of the mean of the middle half relative to that of the mean (normal distribution)
_DEVIATION = 1.4826  # standard deviation relative to the median deviation (normal distribution)


class Series(Struct, frozen=True):
    """The measurements of one flow: their number, the mean of their middle half, and the newest of them."""

    count: int
    middle: float
    deviations: tuple[float, ...]  # relative
    newest: Observation


def decide(share: float, error: float, least: float, settled: bool = True) -> Decision:
    """What a flow is that reaches this share of its equals, with this relative standard error.

    `least` is the largest loss of a healthy flow. `settled`: there are enough measurements to call a flow slow.
    """
    lost = 1 - share
    if lost > max(least, SURE * error):
        return "slow" if settled else "again"
    return "equal" if lost < LOST - UNLIKELY * error or error < (LOST - least) / UNLIKELY else "again"


def middle(values: Sequence[float]) -> float:
    """The mean of the middle half: neither a disturbed measurement nor a lucky one moves it."""
    ordered, cut = sorted(values), len(values) // 4
    return mean(ordered[cut : len(ordered) - cut])


def error_of(deviation: float, count: int) -> float:
    """The relative standard error of the middle of `count` measurements with this standard deviation."""
    return float(_TRIMMED * deviation / count**0.5)


@once_per_snapshot
def series_of(snapshot: Snapshot) -> Mapping[Flow, Series]:
    """The flows that were measured at least FEWEST times, today and earlier; of each the last MOST measurements."""
    wrong = {id(one.observation) for one in implausible(snapshot)}
    found = {}
    for about, several in snapshot.observed.items():
        if isinstance(about, Flow) and about.op not in (*COLLECTIVES, EGRESS):
            now = [one for one in several if one.quantity == "rate" and id(one) not in wrong]
            every = [*continued(snapshot.earlier.get((about, "rate"), ()), now), *now][-MOST:]
            if now and len(every) >= FEWEST:
                found[about] = _series(every)
    return found


def continued(past: Sequence[Observation], now: Sequence[Observation]) -> Sequence[Observation]:
    """The past measurements if those of now can be of the same flow in the same state, else none.

    A new fault and a repair change the rate. The past would hide them.
    """
    if len(past) < FEWEST or not now:
        return past
    before, present = middle([one.value for one in past]), mean(one.value for one in now)
    deviation = _DEVIATION * median(abs(one.value - before) for one in past)
    error = deviation * float((1 / len(now) + 1 / len(past)) ** 0.5)
    return past if abs(present - before) <= CHANGED * error else ()


def _series(several: Sequence[Observation]) -> Series:
    values = [one.value for one in several]
    typical = middle(values)
    return Series(len(values), typical, tuple(abs(one / typical - 1) for one in values) if typical else (), several[-1])


def deviation_within(several: Sequence[Series]) -> float:
    """The relative standard deviation of one measurement, from the series of equal flows."""
    every = [one for series in several for one in series.deviations]
    count = median(series.count for series in several)
    return _DEVIATION * median(every) * float((count / (count - 1)) ** 0.5) if every else 0.0
