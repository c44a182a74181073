"""How fast the memory of a GPU copies within itself. What is read and what is written both count, as published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, Record
from ....models.facts.units import MIB
from ....models.report import Report
from ..probe import Probe, Wanted
from .concurrent_copies import Lane
from .copy_plan import gpus_of, probe_of, wanted_runs
from .copy_request import CopyRequest, Run, flows
from .copy_runs import measured
from .cuda_driver import Cuda, Device, Refused, Stream
from .cuda_gpus import fitting

SIZE = 512 * MIB  # of a copy: ten times the largest cache of a Hopper, four times that of a Blackwell
_LEAST, _CACHES = 64 * MIB, 4  # bytes; and of the last cache, so many times: what fits into it never leaves it
_KINDS = frozenset({("gpu",)})


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """One process, in which one GPU after the other copies."""
    runs: list[Run] = [((name,),) for name in gpus_of(report.topology)]
    if asked := wanted_runs(report.topology, runs, wanted):
        yield probe_of("device_memory", report, wanted, asked, SIZE, _KINDS)


def copies(*words: str) -> Iterator[Record]:
    """Runs in the child. What is asked is in the words of copy_request.py."""
    yield from measured("device_memory", words, MemoryBench)


class MemoryBench:
    """Two buffers on each GPU, taken when it is its turn."""

    counted = 2

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._memory: dict[str, tuple[Stream, int, int]] = {}

    def prepare(self, device: Device) -> None:
        size = fitting(device.free(), SIZE, 2, max(_LEAST, _CACHES * device.cache))
        if size is None:
            raise Refused(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        self._memory[device.name] = device.stream(), device.take(2 * size), size

    def lanes(self, run: Run) -> list[Lane]:
        return [Lane(stream, base + size, base, size) for (name,) in run for stream, base, size in [self._memory[name]]]

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size)

    def wake(self, run: Run, lanes: Sequence[Lane]) -> None:
        """The first copy, which does not count, wakes the memory."""

    def look(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        return []

    def close(self) -> None:
        """All that was taken is the GPUs'."""
