"""Increases of a counter in the last minute, hour and day, and since boot, against limits and equal devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...facts.averages import median
from ...facts.machine import Node
from ...facts.records import Evidence, Observation
from ...inventory.snapshot import Snapshot

HOUR, DAY = 3600.0, 86400.0
_WINDOWS = (60.0, HOUR, DAY)
_SHORTEST = 5.0  # seconds between two readings; a shorter time gives no reliable rate
_LEAST_EQUAL = 3  # other devices with a known counter
_FAR_ABOVE = 10.0  # times the median of equal devices


class Rise(Struct, frozen=True):
    """The increase of a counter in one window."""

    new: float
    seconds: float
    window: float | None  # seconds; None: since boot, or since an operator accepted the node
    before: Observation | None
    now: Observation

    @property
    def per_hour(self) -> float:
        """The rate."""
        return self.new / self.seconds * HOUR

    @property
    def span(self) -> str:
        """The time as text: "in 60 s", "in 1 hour", "in the 22 days since boot"."""
        for unit, factor in (("days", DAY), ("hours", HOUR)):
            if self.seconds >= 2 * factor or (unit == "hours" and self.seconds >= factor):
                number = f"{self.seconds / factor:.3g}"
                time = f"{number} {unit if number != '1' else unit[:-1]}"
                break
        else:
            time = f"{self.seconds:.0f} s"
        return f"in {time}" if self.before else f"in the {time} since boot"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The readings."""
        return (self.before.evidence, self.now.evidence) if self.before else (self.now.evidence,)


class Limit(Struct, frozen=True):
    """When increases are too many: more than `per_hour` and at least `fewest`; or `outlier` far above equal devices."""

    fewest: float
    per_hour: float
    outlier: float = float("inf")


def latest_counter(snapshot: Snapshot, about: str, quantity: str) -> Observation | None:
    """The latest reading of a counter."""
    return snapshot.latest.get((about, quantity))


def rises(snapshot: Snapshot, now: Observation) -> Iterator[Rise]:
    """The increase in each window, and since boot if no reading is a day old.

    If no reading is as old as a window, the window begins at the first reading, as in the first day of a service.
    A lower value than before means a reset: only readings since then count. If the counter did not rise in the last
    day, older errors are history.
    """
    earlier = _since_reset(snapshot, now)
    for window in _WINDOWS:
        before = next((one for one in reversed(earlier) if one.at <= now.at - window), earlier[0] if earlier else None)
        if before and now.at - before.at >= _SHORTEST:
            yield Rise(now.value - before.value, now.at - before.at, window, before, now)
    if earlier and earlier[0].at <= now.at - DAY:
        return
    node = snapshot.of(Node).get("node")
    accepted = snapshot.when_accepted.get((now.about, now.quantity))
    base = accepted if accepted and accepted.value <= now.value else None
    start = base.at if base else node.booted if node else None
    if start is not None and now.at - start >= _SHORTEST:
        yield Rise(now.value - (base.value if base else 0), now.at - start, None, base, now)


def _since_reset(snapshot: Snapshot, now: Observation) -> Sequence[Observation]:
    """The earlier readings since boot and since the last reset, oldest first."""
    node = snapshot.of(Node).get("node")
    booted = node.booted if node and node.booted is not None else 0.0
    found: list[Observation] = []
    above = now.value
    for one in reversed(snapshot.earlier.get((now.about, now.quantity), ())):
        if one.at >= now.at:
            continue
        if one.value > above or one.at < booted:
            break
        found.append(one)
        above = one.value
    return found[::-1]


def too_many(snapshot: Snapshot, now: Observation, limit: Limit) -> Rise | None:
    """The first window with more errors than the absolute limit allows."""
    if now.value < limit.fewest:
        return None
    return next(
        (rise for rise in rises(snapshot, now) if rise.new >= limit.fewest and rise.per_hour > limit.per_hour), None
    )


def far_above(
    snapshot: Snapshot, now: Observation, equal: Sequence[Observation | None], limit: Limit
) -> tuple[Rise, float] | None:
    """The first window in which the counter rose far above the median of equal devices, and this median.

    `equal`: the same counter of the other devices. None: the device counts and has no errors.
    """
    if len(equal) < _LEAST_EQUAL or now.value < limit.outlier:
        return None
    for rise in rises(snapshot, now):
        if rise.new < limit.outlier:
            continue
        others = [_in_window(snapshot, one, rise.window) for one in equal]
        known = [value for value in others if value is not None]
        if len(known) >= _LEAST_EQUAL and rise.new > _FAR_ABOVE * max(1.0, median(known)):
            return rise, median(known)
    return None


def _in_window(snapshot: Snapshot, one: Observation | None, window: float | None) -> float | None:
    """The increase of another device's counter in the same window. None: not known."""
    if one is None:
        return 0.0
    return next((rise.new for rise in rises(snapshot, one) if rise.window == window), None)
