"""A sample of a metric, and the cycle of the service that made a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field


class Sample(NamedTuple):
    """One value. A label with the value "" is left out."""

    metric: str  # one of METRICS
    labels: Mapping[str, str]
    value: float


class CycleInfo(Struct, frozen=True, kw_only=True):
    """About the cycle of the service that made a report; a one-shot report has none."""

    ended: float  # seconds since 1970
    seconds: float  # duration of the cycle
    every: float = 15.0  # present seconds between two cycles
    stuck: int = 0  # children and threads that hang and cannot be ended
    moved: Mapping[str, int] = field(default_factory=dict)  # probe -> bytes moved since the service started
    rate_lifetime: float | None = None  # seconds after which an observed rate is no longer reported; None: never
    count_lifetime: float | None = None  # the same for counters
    would_drain: tuple[tuple[str, str], ...] = ()  # (code, subject) of findings that close the gate if enforced

    def is_stale(self, at: float, lifetime: float | None) -> bool:
        """Whether a value of the time `at` is older than `lifetime` seconds at the end of the cycle."""
        return lifetime is not None and at < self.ended - lifetime
