"""The highest rate of byte counters that are sampled repeatedly."""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST = 3.0  # seconds between two samples: a longer interval hides a second of full rate
_LEAST = 50e6  # bytes per second: above management traffic, below the traffic of any job


class Peaks:
    """The highest rate (bytes per second) of each device over all its counters, and the counter's name."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, str], tuple[float, int]] = {}
        self._highest: dict[str, tuple[float, str]] = {}

    def sample(self, device: str, counter: str, now: float, count: int | None) -> None:
        """Add a sample: total bytes at the monotonic time `now` in seconds.

        None: the counter is not available now and may restart from zero.
        """
        if count is None:
            self._before.pop((device, counter), None)
            return
        then, before = self._before.get((device, counter), (now, count))
        self._before[device, counter] = now, count
        if not 0 < now - then <= _LONGEST:
            return
        rate = (count - before) / (now - then)
        if rate > max(self._highest.get(device, (0.0, ""))[0], _LEAST):
            self._highest[device] = rate, counter

    def taken(self) -> Mapping[str, tuple[float, str]]:
        """Rate and counter of each device since the previous call of this method."""
        highest, self._highest = self._highest, {}
        return highest


def words(rate: float) -> str:
    """The evidence text of a peak rate in bytes per second."""
    return f"{rate / 1e9:.2f} GB/s in one second of a job's traffic"
