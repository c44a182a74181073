"""Rate of a copy as a function of message size: a small message does not reach the rate of the link.

A message of n bytes reaches the share 1 / (1 + (half/n)^p) of the rate. With p = 1 this is Hockney's model of a
constant latency (The communication challenge for MPP, 1994). Measured curves rise more slowly (engines switch
protocols, pipelines fill). So p follows from the sizes at which half and nine tenths of the rate are reached. No
message is faster than one of a few bytes. message_times.py has the same formula for collectives, with the startup time
T = half / rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from ..catalog.links import Sized, links
from ..facts.averages import median
from ..facts.records import COLLECTIVES
from .efficiency import family

# Half sizes of the same link differ between machines by up to this factor. nccl-tests on 8 A100: 14.5 and 15.1 MB; host
# copies over PCIe 4: 0.58 and 0.63 MB; loopback of HDR NICs: 3.7 and 6.3 kB, median 3.8 kB.
_SPREAD = 1.4
# Copies of 64 MiB reach at least nine tenths of their rate over every link (links.toml, sized). Collectives reach
# nine tenths of their peak at sizes from 0.2 to 5 GB, depending on the machine (fits of 8xA100 to 8xB200).
_FULL, _FULL_COLLECTIVE = 64 << 20, 1 << 30


class Curve(Struct, frozen=True):
    """Sizes in bytes that reach half and nine tenths of the rate; seconds of the smallest message."""

    half: float | None
    ninety: float | None
    latency: float | None

    def share(self, size: int, spread: float = 1.0) -> float:
        """The share of the long-message rate at `size` bytes; `spread` is a factor on the half size."""
        if self.half is None:
            return 1.0
        half = self.half * spread
        ninety = max(self.ninety or 9 * self.half, 1.01 * self.half) * spread
        power = math.log(9) / math.log(ninety / half)
        return 1 / (1 + math.exp(min(power * math.log(half / size), 700.0)))  # exp() overflows above

    def bounds(self, size: int) -> tuple[float, float, float]:
        """Low, typical and high of `share`."""
        return self.share(size, _SPREAD), self.share(size), self.share(size, 1 / _SPREAD)


def full(op: str) -> int:
    """The size in bytes above which messages of an operation count as long."""
    return _FULL_COLLECTIVE if op in COLLECTIVES else _FULL


@lru_cache(maxsize=256)
def curve(grade: str, op: str) -> Curve:
    """The curve of an operation over links of a grade or of the nearest grade. Without measurements it has no sizes."""
    sized = [row for row in links().sized if row.op == op]
    near = _near(family(grade))
    for tried in near:
        if rows := [row for row in sized if row.grade == tried and row.half]:
            return _of(rows)
    # No similar grade: use another generation. A slower link needs smaller messages, so this errs to the low side.
    kinds = {tried.rstrip("0123456789") for tried in near}
    return _of([row for row in sized if row.grade.rstrip("0123456789") in kinds])


def _near(grade: str) -> list[str]:
    """The grade and similar grades, nearest first."""
    found = list[str]()
    while grade and grade not in found:
        found.append(grade)
        grade = links().like.get(grade, "")
    return found


def _of(rows: Iterable[Sized]) -> Curve:
    several = list(rows)
    return Curve(*(_median(getattr(row, name) for row in several) for name in ("half", "ninety", "latency")))


def _median(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
