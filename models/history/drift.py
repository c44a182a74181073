"""A lasting change of a measured rate, with its start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import sqrt
from statistics import median

from msgspec import Struct

_FEWEST = 8  # rates on each side of a change
_SIGMAS = 5.0  # standard errors between both sides: at 720 rates without a change, one series in 10,000 reaches them
_LEAST = 0.02  # share of the rate; a smaller change costs no job much
_OUTLIER = 4.0  # standard deviations: a single rate beside a busy process does not shift a mean
_NORMAL = 1.4826  # standard deviation of a normal distribution per median absolute deviation


class Drift(Struct, frozen=True):
    """A change of a rate: its start in seconds since 1970, and the medians before and after it."""

    start: float
    before: float
    after: float


def drift(series: Sequence[tuple[float, float]]) -> Drift | None:
    """The largest lasting change of a series of times and rates, oldest first; None without one.

    The method is the test of a single change of the mean (maximum of the two-sample statistic over all splits; Hinkley,
    Biometrika 57, 1970), with a noise that the change itself does not raise: the median of the differences of
    neighbours.
    """
    values = [value for _, value in series]
    count = len(values)
    if count < 2 * _FEWEST:
        return None
    noise = _NORMAL * median(abs(b - a) for a, b in pairwise(values)) / sqrt(2) or 1e-6 * median(values)
    sums = [0.0, *accumulate(_without_outliers(values, noise))]

    def errors(split: int) -> float:
        """Standard errors between the means of both sides."""
        difference = sums[split] / split - (sums[count] - sums[split]) / (count - split)
        return abs(difference) / noise * sqrt(split * (count - split) / count)

    split = max(range(_FEWEST, count - _FEWEST + 1), key=errors)
    if errors(split) < _SIGMAS:
        return None
    before, after, latest = median(values[:split]), median(values[split:]), median(values[-_FEWEST:])
    lasts = abs(latest - after) < abs(latest - before)  # else a repair has ended it
    return Drift(series[split][0], before, after) if lasts and abs(after / before - 1) >= _LEAST else None


def _without_outliers(values: Sequence[float], noise: float) -> list[float]:
    """Each value, but at most some standard deviations from the median of its neighbourhood."""
    limited = []
    for place, value in enumerate(values):
        near = median(values[max(place - _FEWEST, 0) : place + _FEWEST + 1])
        limited.append(min(max(value, near - _OUTLIER * noise), near + _OUTLIER * noise))
    return limited
