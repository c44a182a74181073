"""Copies that run at the same moment: the rate of each, while all of them run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ....models.facts.reason import Reason
from .cuda_driver import Refused, Stream

_FEWEST = 3  # copies that must have ended
_LONGEST = 5.0  # seconds until they have, one behind the other: 3 of 256 MiB at 0.2 GB/s
SMALL, _SMALL_COPIES = 8, 64  # bytes of a copy that costs nothing but its latency; and how many make one try


class Hung(Refused):
    """Copies that do not end: nothing that would wait for them may be asked any more. `lanes` are their places."""

    def __init__(self, lanes: Sequence[int], seconds: float) -> None:
        why = f"no {_FEWEST} copies in a row within {seconds:.0f} s"
        super().__init__(why, "look into dmesg; is the node idle?", reason=Reason.NO_ANSWER)
        self.lanes = lanes


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream, and what it copies over and over again. Addresses are those of the GPUs' and the host's one space."""

    stream: Stream
    target: int
    source: int
    size: int

    def begin(self) -> None:
        """Start it, with a first copy that does not count."""
        self.stream.begin(self.target, self.source, self.size)

    def queue(self) -> None:
        """Queue as many copies as have ended since the last call."""
        self.stream.queue(self.target, self.source, self.size)

    def rate(self) -> float:
        """Bytes per second of the copies that have ended."""
        return self.stream.copies * self.size / self.stream.seconds

    def latency(self) -> float | None:
        """Seconds of a copy of a few bytes; None where this process was too slow to tell."""
        return self.stream.small(self.target, self.source, (self.target, self.source, self.size), _SMALL_COPIES, SMALL)


def rates(lanes: Sequence[Lane], seconds: float, meanwhile: Callable[[], None] | None = None) -> list[float]:
    """Bytes per second of each. All are kept busy until the last count is taken, so that none is alone at the end.

    `meanwhile` is called once, in the middle. Raises Refused where a copy fails, or nothing ends.
    """
    try:
        for lane in lanes:
            lane.begin()
        start = time.monotonic()
        while not _done(lanes, (passed := time.monotonic() - start) >= seconds and meanwhile is None):
            if meanwhile and passed > seconds / 2:
                meanwhile()
                meanwhile = None
            if passed > _LONGEST + seconds:
                late = [place for place, lane in enumerate(lanes) if lane.stream.copies < _FEWEST]
                raise Hung(late, passed)
            for lane in lanes:
                lane.queue()
        found = [lane.rate() for lane in lanes]
    except Refused as refusal:
        for place, lane in enumerate(lanes):
            if not isinstance(refusal, Hung) or place not in refusal.lanes:
                with suppress(Refused):
                    lane.stream.end()
        raise
    for lane in lanes:
        lane.stream.end()
    return found


def _done(lanes: Sequence[Lane], late: bool) -> bool:
    """Count, and say whether that is enough: before more is asked for, which may start a clock anew."""
    for lane in lanes:
        lane.stream.count()
    return late and all(lane.stream.copies >= _FEWEST for lane in lanes)
