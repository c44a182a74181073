"""The highest rate of counters that are looked at again and again."""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST = 3.0  # seconds between two looks: over more, a second that was full is not seen
_LEAST = 50e6  # bytes per second: more than management traffic, less than any job's


class Peaks:
    """Of each thing the highest rate of any of its counters, in bytes per second; `where` is which."""

    def __init__(self) -> None:
        self._before: tuple[float, Mapping[tuple[str, str], int]] = (0.0, {})
        self._highest: dict[str, tuple[float, str]] = {}

    def look(self, now: float, counts: Mapping[tuple[str, str], int]) -> None:
        """Bytes by thing and counter, at a time of a clock that does not jump."""
        then, before = self._before
        self._before = now, counts
        span = now - then
        if not 0 < span <= _LONGEST:
            return
        for (thing, where), count in counts.items():
            rate = (count - before.get((thing, where), count)) / span
            if rate > max(self._highest.get(thing, (0.0, ""))[0], _LEAST):
                self._highest[thing] = rate, where

    def taken(self) -> Mapping[str, tuple[float, str]]:
        """Those since this was asked last."""
        highest, self._highest = self._highest, {}
        return highest


def words(rate: float) -> str:
    """The evidence of one."""
    return f"{rate / 1e9:.2f} GB/s in one second of a job's traffic"
