"""Concurrent copies: the rate of each copy while all run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from ....models.facts.reason import Reason
from .cuda_driver import CudaError, Stream

_FEWEST = 3  # copies that must end
_LONGEST = 5.0  # seconds for them in sequence: 3 copies of 256 MiB at 0.2 GB/s
SMALL, _SMALL_COPIES = 8, 64  # bytes of a copy that measures latency; number of copies in one try


class Hung(CudaError):
    """Copies do not end, so no call may wait for them. `lanes` are the indexes of the hung lanes."""

    def __init__(self, lanes: Sequence[int], seconds: float) -> None:
        why = f"no {_FEWEST} copies in a row within {seconds:.0f} s"
        super().__init__(why, "look into dmesg; is the node idle?", reason=Reason.NO_ANSWER)
        self.lanes = lanes


class Lane(Struct, frozen=True):
    """A stream and the copy that it repeats. Addresses are in CUDA's unified address space of GPUs and host."""

    stream: Stream
    target: int
    source: int
    size: int

    def begin(self) -> None:
        """Start the lane with a first copy that does not count."""
        self.stream.begin(self.target, self.source, self.size)

    def queue(self) -> None:
        """Queue as many copies as have ended since the last call."""
        self.stream.queue(self.target, self.source, self.size)

    def rate(self) -> float:
        """Return bytes per second of the copies that have ended."""
        return self.stream.copies * self.size / self.stream.seconds

    def latency(self) -> float | None:
        """Return the seconds of a small copy; None if this process was too slow to measure it."""
        return self.stream.small(self.target, self.source, (self.target, self.source, self.size), _SMALL_COPIES, SMALL)


def rates(lanes: Sequence[Lane], seconds: float, meanwhile: Callable[[], None] | None = None) -> list[float]:
    """Return bytes per second of each lane. All lanes stay busy until the last count, so that none runs alone.

    `meanwhile` is called once, halfway. Raises CudaError if a copy fails, and Hung if copies do not end.
    """
    try:
        for lane in lanes:
            lane.begin()
        start = time.monotonic()
        while not _is_enough(lanes, (passed := time.monotonic() - start) >= seconds and meanwhile is None):
            if meanwhile and passed > seconds / 2:
                meanwhile()
                meanwhile = None
            if passed > _LONGEST + seconds:
                late = [index for index, lane in enumerate(lanes) if lane.stream.copies < _FEWEST]
                raise Hung(late, passed)
            for lane in lanes:
                lane.queue()
        measured = [lane.rate() for lane in lanes]
    except CudaError as refusal:
        for index, lane in enumerate(lanes):
            if not isinstance(refusal, Hung) or index not in refusal.lanes:
                with suppress(CudaError):
                    lane.stream.end()
        raise
    for lane in lanes:
        lane.stream.end()
    return measured


def _is_enough(lanes: Sequence[Lane], late: bool) -> bool:
    """Count ended copies and return whether they suffice. Call it before queue(), which may restart a clock."""
    for lane in lanes:
        lane.stream.count()
    return late and all(lane.stream.copies >= _FEWEST for lane in lanes)
