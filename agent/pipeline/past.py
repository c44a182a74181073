"""Earlier observations in the memory of a service: which of them it keeps, and for how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from ...models.bandwidth.repeated_rates import MOST, continued
from ...models.facts.records import Flow, Observation, Record

_MINUTE, _HOUR = 60.0, 3600.0
_LONGEST = 48 * _HOUR  # limits the memory of a service
_OLDEST_RATE = 30 * 24 * _HOUR


def thin(records: Iterable[Record], now: float) -> tuple[Observation, ...]:
    """Thin out earlier observations to what rules need, which also limits the memory of a service.

    Each series keeps the first value of each minute in the last hour, and of each hour before that, up to 48 hours. A
    run of equal values keeps only its first and its last value. Observations dated in the future are dropped.
    """
    series = defaultdict[tuple[Flow | str, str], list[Observation]](list)
    oldest = now - _LONGEST
    for one in records:
        if isinstance(one, Observation) and oldest <= one.at <= now:
            series[one.about, one.quantity].append(one)
    return tuple(one for several in series.values() for one in _thinned(several, now))


def recent_rates(past: Iterable[Record], measured: Iterable[Record], now: float) -> tuple[Observation, ...]:
    """The last rates of each flow, as many as count, of the last 30 days. A changed rate ends those before it."""
    before, latest = _rates(past, now), _rates(measured, now)
    return tuple(
        one
        for flow in {**before, **latest}
        for one in [*continued(before.get(flow, ()), latest.get(flow, ())), *latest.get(flow, ())][-MOST:]
    )


def _rates(records: Iterable[Record], now: float) -> Mapping[Flow, Sequence[Observation]]:
    """The rates of the last 30 days, by flow."""
    series = defaultdict[Flow, list[Observation]](list)
    for one in records:
        if not (isinstance(one, Observation) and isinstance(one.about, Flow) and one.quantity == "rate"):
            continue
        if now - _OLDEST_RATE <= one.at <= now:
            series[one.about].append(one)
    return series


def _thinned(several: list[Observation], now: float) -> Iterable[Observation]:
    """Thin out one series. In a service that runs for days, a cycle looks at ten thousand observations here."""
    if len(several) == 1:
        return several
    several.sort(key=attrgetter("at"))
    hour_ago = now - _HOUR
    retained: list[Observation] = []
    older = newer = None  # the values of the last two that are retained
    last = 0.0  # the minute of the last one that is retained, or its hour as a negative number
    for one in several:
        at, value = one.at, one.value
        span = at // _MINUTE if at > hour_ago else -1 - at // _HOUR
        if older == newer == value:
            retained[-1], last = one, span
        elif span != last or not retained:
            retained.append(one)
            older, newer, last = newer, value, span
    return retained
