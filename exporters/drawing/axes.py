"""Round numbers along an axis."""

from __future__ import annotations

from math import floor, log10

_MARKS = 5


def round_step(most: float) -> float:
    """The distance between about five marks from 0 to `most`: 1, 2 or 5 times a power of ten."""
    rough = most / _MARKS
    power = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
