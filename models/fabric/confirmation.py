"""Bisection: flows that run alone confirm a cause, or show that only the sum of several flows is limited."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from msgspec.structs import replace

from ..facts.averages import median
from .localization import Cause, Measured, joined, usual_rates
from .plan import Round
from .wiring import Pair

_AGAIN = 2  # flows of each cause that run again, one after the other
_MOST = 12  # rounds; each takes as long as a round of the plan


def rounds_to_confirm(causes: Sequence[Cause]) -> tuple[Round, ...]:
    """Rounds with one flow each, first one of each cause. They avoid the flows of other causes if possible.

    A cause with one flow runs it again in a later round, because what disturbed it may still last in the next one.
    """
    chosen = [tuple(islice(cycle(_chosen(cause, causes)), _AGAIN)) for cause in causes[:_MOST]]
    return tuple((pairs[number],) for number in range(_AGAIN) for pairs in chosen)[:_MOST]


def _chosen(cause: Cause, causes: Sequence[Cause]) -> Sequence[Pair]:
    """The flows of the cause, those without another cause first: the first of them and the last, then the others."""
    others = {pair for one in causes if one is not cause for pair in one.pairs}
    clear = [pair for pair in cause.pairs if pair not in others] or list(cause.pairs)
    return [*clear[:1], *clear[:0:-1]]


def confirmed(causes: Sequence[Cause], again: Sequence[Measured], first: Sequence[Measured]) -> tuple[Cause, ...]:
    """The causes with the rate of their flows that ran alone. A port, a node or a pair that is fast alone is no cause.

    One fast flow is enough: load can make any flow slow, and nothing makes a flow faster than the part that it passes.
    An uplink or a leaf that is fast for one flow remains, because several nodes share it. It is a fault only if others
    of its kind carry more. A single slow flow is a cause only if it was measured again; see undecided().
    """
    usual = usual_rates(first)
    unsure = undecided(causes, again)
    found = []
    for cause in causes:
        rates = _alone(cause, again)
        limit = usual[cause.pairs[0].sender.rail]
        if cause.kind == "pair" and cause.pairs[0] in unsure:
            continue
        if not rates:
            found.append(cause)
        elif limit.is_slow(max(rates)):
            found.append(replace(cause, alone=median(rates)))
        elif cause.kind in ("uplink", "leaf"):
            less = cause.elsewhere is not None and cause.carried < (1 - limit.tolerance) * cause.elsewhere
            found.append(replace(cause, alone=median(rates), shared=not less))
    return joined(found)


def undecided(causes: Sequence[Cause], again: Sequence[Measured]) -> list[Pair]:
    """The single slow flows that were not measured again often enough."""
    return [one.pairs[0] for one in causes if one.kind == "pair" and len(_alone(one, again)) < _AGAIN]


def _alone(cause: Cause, again: Sequence[Measured]) -> list[float]:
    return [one.rate for one in again if one.pair in cause.pairs]
