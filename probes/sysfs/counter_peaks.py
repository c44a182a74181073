"""The highest rate of counters that are looked at again and again."""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST = 3.0  # seconds between two looks: over more, a second that was full is not seen
_LEAST = 50e6  # bytes per second: more than management traffic, less than any job's


class Peaks:
    """Of each thing the highest rate of any of its counters, in bytes per second; `where` is which."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], tuple[float, int]] = {}
        self._highest: dict[str, tuple[float, str]] = {}

    def look(self, thing: str, where: str, now: float, count: int | None) -> None:
        """Bytes so far, and when that was, by a clock that does not jump: a moment later for one than for another.

        None: it does not count now, and may begin anew.
        """
        if count is None:
            self._before.pop((thing, where), None)
            return
        then, before = self._before.get((thing, where), (now, count))
        self._before[thing, where] = now, count
        if not 0 < now - then <= _LONGEST:
            return
        rate = (count - before) / (now - then)
        if rate > max(self._highest.get(thing, (0.0, ""))[0], _LEAST):
            self._highest[thing] = rate, where

    def taken(self) -> Mapping[str, tuple[float, str]]:
        """Those since this was asked last."""
        highest, self._highest = self._highest, {}
        return highest


def words(rate: float) -> str:
    """The evidence of one."""
    return f"{rate / 1e9:.2f} GB/s in one second of a job's traffic"
