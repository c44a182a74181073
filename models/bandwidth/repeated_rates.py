"""Repeated measurements of equal flows: the middle of each series, its error, and what the series decide.

One measurement of a copy scatters by up to 2 %, so it cannot show a loss of 3 %. The mean of n measurements scatters
less by the square root of n. A group-sequential test looks at the series after each batch of measurements and decides:
the flow is slow, it is as fast as its equals, or it must be measured again. The false rate holds for all looks.

The history of weeks also shows a drift: a flow that is slower than its own past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..facts.averages import mean, median
from ..facts.records import COLLECTIVES, EGRESS, Flow, Observation
from ..facts.units import as_utc
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import Expectation, Level
from .plausibility import implausible

Decision: TypeAlias = Literal["slow", "equal", "undecided"]
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
# Quantities of observations: the median rates before and since the start of a lasting change (models/history/drift.py).
# Their time is the start.
RATE_BEFORE, RATE_SINCE = "rate_before_drift", "rate_since_drift"


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
        return "slow" if settled else "undecided"
    return "equal" if lost < LOST - UNLIKELY * error or error < (LOST - least) / UNLIKELY else "undecided"


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


class _Drift(Struct, frozen=True):
    start: float  # seconds since 1970
    before: float  # bytes per second
    since: float


def slower_than_before(snapshot: Snapshot, level: Level) -> Iterator[tuple[Level, Expectation]]:
    """The level with its median rate since the start of the drift, and the rate before. Nothing without a drift."""
    drift = _drifts(snapshot).get(level.flow)
    if drift and drift.since < drift.before:
        middle = (drift.before + drift.since) / 2
        source = f"the median of this flow's own rates until {as_utc(drift.start)}"
        expected = Expectation(
            basis="baseline", low=middle, typical=drift.before, high=2 * drift.before - middle, source=source
        )
        yield replace(level, observed=drift.since), expected


def start_of(snapshot: Snapshot, flows: Iterable[Flow]) -> str | None:
    """The time at which the first of these flows began to be slower. None: unknown."""
    drifts = _drifts(snapshot)
    starts = [drifts[flow].start for flow in flows if flow in drifts and drifts[flow].since < drifts[flow].before]
    return as_utc(min(starts)) if starts else None


@once_per_snapshot
def _drifts(snapshot: Snapshot) -> Mapping[Flow, _Drift]:
    values = {(one.about, one.quantity): one for one in snapshot.observations}
    found = {}
    for (about, quantity), before in values.items():
        since = values.get((about, RATE_SINCE))
        if isinstance(about, Flow) and quantity == RATE_BEFORE and since:
            found[about] = _Drift(before.at, before.value, since.value)
    return found
