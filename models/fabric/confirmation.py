"""Bisection: flows that run alone confirm a cause, or show that only the sum of several flows is limited."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..facts.averages import median
from .fabric_localization import Cause, Measured, joined, usual_rates
from .wiring import Pair

MOST = 24  # flows that run alone; each takes as long as a round of the plan
_AGAIN, _AGAIN_UNSTEADY = 2, 5  # flows of each cause; if rates scatter
_CHANCE = 0.01  # that any single flow is slow each time by chance


def next_flows(causes: Sequence[Cause], again: Sequence[Measured], first: Sequence[Measured]) -> Iterator[Pair]:
    """The next flow of each cause that is neither confirmed nor cleared. It avoids the flows of other causes."""
    usual = usual_rates(first)
    for cause in causes:
        rates, limit = _alone(cause, again), usual[cause.pairs[0].sender.rail]
        clear = (limit.steady or cause.kind == "pair") and any(not limit.is_slow(rate) for rate in rates)
        if len(rates) < _needed(cause, causes, first) and not clear:
            chosen = _chosen(cause, causes)
            yield chosen[len(rates) % len(chosen)]


def _needed(cause: Cause, causes: Sequence[Cause], first: Sequence[Measured]) -> int:
    """How often flows of the cause run alone: a single pair until other load hardly explains that it is always slow."""
    if cause.kind != "pair":
        return _AGAIN if usual_rates(first)[cause.pairs[0].sender.rail].steady else _AGAIN_UNSTEADY
    single = sum(one.kind == "pair" for one in causes)
    return max(_AGAIN, math.ceil(math.log(_CHANCE / single) / math.log(single / (len(first) + 1))))


def _chosen(cause: Cause, causes: Sequence[Cause]) -> Sequence[Pair]:
    """The flows of the cause, those without another cause first: the first of them and the last, then the others."""
    others = {pair for one in causes if one is not cause for pair in one.pairs}
    clear = [pair for pair in cause.pairs if pair not in others] or list(cause.pairs)
    return [*clear[:1], *clear[:0:-1]]


def confirmed(causes: Sequence[Cause], again: Sequence[Measured], first: Sequence[Measured]) -> tuple[Cause, ...]:
    """The causes with the rate of their flows that ran alone. A port, a node or a pair that is fast alone is no cause.

    An uplink or a leaf that is fast for one flow remains, because several nodes share it. It is a fault only if others
    of its kind carry more. A single slow flow is a cause only if it was measured again; see undecided().
    """
    usual = usual_rates(first)
    unsure = undecided(causes, again, first)
    found = []
    for cause in causes:
        rates = _alone(cause, again)
        limit = usual[cause.pairs[0].sender.rail]
        if cause.kind == "pair" and cause.pairs[0] in unsure:
            continue
        if not rates:
            found.append(cause)
        elif limit.is_slow(max(rates)) if cause.kind == "pair" else limit.is_slow_alone(rates):
            found.append(replace(cause, alone=median(rates)))
        elif cause.kind in ("uplink", "leaf"):
            less = cause.elsewhere is not None and cause.carried < (1 - limit.tolerance) * cause.elsewhere
            found.append(replace(cause, alone=median(rates), shared=not less))
    return joined(found)


def undecided(causes: Sequence[Cause], again: Sequence[Measured], first: Sequence[Measured]) -> list[Pair]:
    """The single slow flows that still were neither confirmed nor cleared."""
    single = [one for one in causes if one.kind == "pair"]
    waiting = {*next_flows(causes, again, first)}
    return [one.pairs[0] for one in single if one.pairs[0] in waiting]


def _alone(cause: Cause, again: Sequence[Measured]) -> list[float]:
    return [one.rate for one in again if one.pair in cause.pairs]
