"""A sample of a metric, and the round in which a report was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Sample(NamedTuple):
    """One value. A label whose value is "" is as good as none."""

    metric: str  # one of METRICS
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The daemon's round in which a report was made; of a one-shot there is none."""

    ended: float  # seconds since 1970
    seconds: float  # that it took
    every: float = 15.0  # seconds from one to the next, at present
    stuck: int = 0  # children and threads that hang and could not be ended
    moved: Mapping[str, int] = field(default_factory=dict)  # bytes that each probe has moved since the daemon began
    rates_last: float | None = None  # seconds after which a rate that was observed is told no more; None: never
    counts_last: float | None = None  # the same of counters
    would_drain: tuple[tuple[str, str], ...] = ()  # code and subject of what closes the gate, or would

    def is_over(self, at: float, lasts: float | None) -> bool:
        """Whether what was read at that time is too old by now to be told."""
        return lasts is not None and at < self.ended - lasts
