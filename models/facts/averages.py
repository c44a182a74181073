"""The middle and the mean of values. The module `statistics` computes the same; its import takes 8 ms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two middle values. There must be a value."""
    ordered = sorted(values)
    middle, odd = divmod(len(ordered), 2)
    return ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) / 2


def mean(values: Iterable[float]) -> float:
    """The mean, added without rounding errors. There must be a value."""
    several: Sequence[float] = tuple(values)
    return math.fsum(several) / len(several)
