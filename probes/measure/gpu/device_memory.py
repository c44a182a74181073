"""The probe `device_memory`: copy rate within a GPU's memory. Read and written bytes both count, as in data sheets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, Record
from ....models.facts.units import MIB
from ....models.report import Report
from ..probe import Probe, Scope
from .concurrent_copies import Lane
from .copy_plan import gpus_of, probe_of, runs_in_scope
from .copy_request import CopyRequest, Run, flows
from .copy_runs import measured
from .cuda_driver import Cuda, CudaError, Device, Stream
from .cuda_gpus import fitting
from .performance_state import Waking

SIZE = 512 * MIB  # bytes of a copy: ten times the largest cache of Hopper, four times that of Blackwell
_LEAST, _CACHES = 64 * MIB, 4  # bytes; multiple of the last-level cache, because a smaller buffer stays in the cache
_KINDS = frozenset({("gpu",)})


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield one probe, in which the GPUs copy in sequence."""
    runs: list[Run] = [((name,),) for name in gpus_of(report.topology)]
    if planned := runs_in_scope(report.topology, runs, scope):
        yield probe_of("device_memory", report, scope, planned, SIZE, _KINDS)


def copies(*words: str) -> Iterator[Record]:
    """Measure in the child process. `words` are the arguments of copy_request.py."""
    yield from measured("device_memory", words, MemorySetup)


class MemorySetup:
    """Two buffers on each GPU."""

    bytes_factor = 2

    def __init__(self, cuda: Cuda, request: CopyRequest, devices: Mapping[str, Device]) -> None:
        self._memory: dict[str, tuple[Stream, int, int]] = {}
        self._waking = Waking(devices)

    def prepare(self, device: Device) -> None:
        size = fitting(device.free(), SIZE, 2, max(_LEAST, _CACHES * device.cache))
        if size is None:
            raise CudaError(
                f"only {device.free() / 1e6:.0f} MB of its memory are free",
                "end what uses it",
                reason=Reason.NOT_MEASURED,
            )
        self._memory[device.name] = device.stream(), device.take(2 * size), size

    def lanes(self, run: Run) -> list[Lane]:
        return [Lane(stream, base + size, base, size) for (name,) in run for stream, base, size in [self._memory[name]]]

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        return flows(run, size)

    def wake_links(self, run: Run, lanes: Sequence[Lane]) -> None:
        self._waking.wake([name for (name,) in run], lanes)

    def sample_links(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        return []

    def close(self) -> None:
        """Do nothing: all memory belongs to the GPUs."""
