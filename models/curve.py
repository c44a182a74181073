"""Rate against size: a message too small to fill the pipe does not reach the rate of a link.

The share of the rate that a message of n bytes reaches is 1 / (1 + (half/n)^p). With p = 1 that is Hockney's model of a
constant latency (The communication challenge for MPP, 1994); measured curves rise more slowly (engines switch
protocols, pipelines fill), so p is set by the sizes at which half and nine tenths are reached. Below, nothing is faster
than a message of a few bytes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .attainable import family
from .catalog.links import Sized, links

# Half sizes of the same link differ between machines by up to this factor (nccl-tests of 8 A100: 14.5 and 15.1 MB; host
# copies over PCIe 4: 0.58 and 0.63 MB; loopback of HDR NICs: 3.7 and 6.3 kB, around the median of 3.8).
_SPREAD = 1.4


@dataclass(frozen=True, slots=True)
class Curve:
    """Sizes in bytes at which half of the rate and nine tenths are reached; seconds of the smallest message."""

    half: float | None
    ninety: float | None
    latency: float | None

    def share(self, size: int, spread: float = 1.0) -> float:
        """Of the rate of long messages, what one of `size` bytes reaches; `spread` times slower to rise than usual."""
        if self.half is None:
            return 1.0
        half = self.half * spread
        ninety = max(self.ninety or 9 * self.half, 1.01 * self.half) * spread
        power = math.log(9) / math.log(ninety / half)
        return 1 / (1 + math.exp(min(power * math.log(half / size), 700.0)))  # beyond that exp() overflows

    def bounds(self, size: int) -> tuple[float, float, float]:
        """Low, typical and high of `share`."""
        return self.share(size, _SPREAD), self.share(size), self.share(size, 1 / _SPREAD)


LONG = Curve(None, None, None)


@lru_cache(maxsize=256)
def curve(grade: str, op: str) -> Curve:
    """Of an operation over links of a grade, or of the nearest that was measured; LONG where nothing was."""
    catalog = links()
    seen = set[str]()
    tried = family(grade)
    while tried and tried not in seen:
        seen.add(tried)
        rows = [row for row in catalog.sized if row.grade == tried and row.op == op]
        if any(row.half for row in rows):
            return Curve(_median(row.half for row in rows), _median(row.ninety for row in rows), _latency(rows))
        tried = catalog.like.get(tried, "")
    return Curve(None, None, _latency(row for row in catalog.sized if row.grade == family(grade) and row.op == op))


def _latency(rows: Iterable[Sized]) -> float | None:
    return _median(row.latency for row in rows)


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
