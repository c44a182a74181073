"""Executing the runs of a copy request in sequence, and yielding their rates and failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import KIB, MIB
from .concurrent_copies import SMALL, Hung, Lane, rates
from .copy_request import CopyRequest, Pace, Run, parsed
from .cuda_driver import Cuda, CudaError, Device
from .cuda_gpus import close_gpus, open_gpus

_LATENCIES = 5  # tries; the shortest counts


class CopySetup(Protocol):
    """The buffers, streams and links of a copy probe."""

    bytes_factor: int  # counts of each copied byte in a rate: 2 within one memory (read and written), else 1

    def prepare(self, device: Device) -> None:
        """Allocate the memory of a GPU. Raises CudaError."""

    def lanes(self, run: Run) -> list[Lane]:
        """Return the copies of a run; none if this machine cannot run it. Raises CudaError."""

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        """Return the flows of a run."""

    def wake_links(self, run: Run, lanes: Sequence[Lane]) -> None:
        """Bring the links of a run to full speed. Raises CudaError."""

    def sample_links(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        """Return observations of the links under load."""

    def close(self) -> None:
        """Release all memory except the GPUs'."""


SetupFactory: TypeAlias = Callable[[Cuda, CopyRequest, Mapping[str, Device]], CopySetup]


def measured(what: str, words: Sequence[str], make: SetupFactory) -> Iterator[Record]:
    """Yield the results of each run. `what` is the name of the probe, `make` creates its buffers."""
    request = parsed(words)
    try:
        cuda = Cuda()
    except CudaError as refusal:
        yield NotChecked(what=what, subject="node", reason=refusal.reason, detail=str(refusal), how=refusal.how)
        return
    devices, lost = open_gpus(cuda, request, what)
    yield from lost
    setup, moved, usable = make(cuda, request, devices), 0.0, len(devices)
    known: dict[tuple[object, str], float] = {}  # last values of links, because many runs observe the same links
    try:
        for name, device in [*devices.items()]:
            try:
                setup.prepare(device)
            except CudaError as refusal:
                yield NotChecked(what=what, subject=name, reason=refusal.reason, detail=str(refusal), how=refusal.how)
                devices.pop(name).close()
        usable = len(devices)
        for run in request.runs:
            for record in _measured(what, _usable_copies(run, request, devices), setup, request.pace, devices):
                if isinstance(record, Observation) and record.quantity == "bytes_moved":
                    moved += record.value
                elif not _is_known(record, known):
                    yield record
    finally:
        if len(devices) == usable:  # a hung copy still uses host memory; the kernel frees it with this process
            setup.close()
        close_gpus(devices)
    yield _moved("node" if len(request.gpus) > 1 else next(iter(request.gpus), "node"), moved)


def _is_known(record: Record, known: dict[tuple[object, str], float]) -> bool:
    """Whether the last observation of a link or GPU had the same value; stores the new value."""
    if not isinstance(record, Observation) or isinstance(record.about, Flow):
        return False
    before = known.get((record.about, record.quantity))
    known[record.about, record.quantity] = record.value
    return before == record.value


def _usable_copies(run: Run, request: CopyRequest, devices: Mapping[str, Device]) -> Run:
    """Return the copies of a run between usable GPUs. A concurrent run is empty if only one copy remains."""
    usable = tuple(ends for ends in run if all(end in devices for end in ends if end in request.gpus))
    return usable if len(usable) > 1 or len(run) == 1 else ()


def _measured(what: str, run: Run, setup: CopySetup, pace: Pace, devices: dict[str, Device]) -> Iterator[Record]:
    """Yield the results of a run. GPUs with hung copies are removed from `devices`, so that later runs skip them."""
    if not run:
        return
    try:
        lanes = setup.lanes(run)
        if not lanes:
            return
        setup.wake_links(run, lanes)
        link_records: list[Record] = []
        best, moved = [0.0] * len(lanes), 0.0
        for _ in range(pace.tries):
            now = rates(
                lanes, pace.seconds, lambda: link_records.__setitem__(slice(None), setup.sample_links(run, lanes))
            )
            best = [max(pair) for pair in zip(best, now, strict=True)]
            moved += sum(lane.stream.queued * lane.size for lane in lanes)
        yield from link_records
        yield from _rates(setup, run, lanes, best, pace)
        yield _moved("node", moved)
        if len(run) == 1 and len(run[0]) == 2:
            yield from _latency(setup, run, lanes[0])
    except CudaError as refusal:
        hung = refusal.lanes if isinstance(refusal, Hung) else ()
        for end in (end for index in hung for end in run[index]):
            devices.pop(end, None)
        about = setup.flows(run, None)[hung[0] if hung else 0].subject
        why = str(refusal) if len(run) == 1 else f"{len(run)} copies at the same moment: {refusal}"
        yield NotChecked(what=what, subject=about, reason=refusal.reason, detail=why, how=refusal.how)


def _rates(
    setup: CopySetup, run: Run, lanes: Sequence[Lane], best: Sequence[float], pace: Pace
) -> Iterator[Observation]:
    manner = "alone" if len(run) == 1 else f"{len(run)} at the same moment"
    for flow, lane, rate in zip(setup.flows(run, lanes[0].size), lanes, best, strict=True):
        text = f"copies of {as_size(lane.size)}, {manner}, best of {pace.tries} tries of {pace.seconds * 1e3:.0f} ms"
        yield Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=setup.bytes_factor * rate,
            at=time.time(),
            busy=True,
            evidence=Evidence("cuMemcpyAsync", text),
        )


def _latency(setup: CopySetup, run: Run, lane: Lane) -> Iterator[Observation]:
    (flow,) = setup.flows(run, SMALL)
    tries = [seconds for _ in range(_LATENCIES) if (seconds := lane.latency()) is not None]
    text = f"copies of {SMALL} bytes, one behind the other, shortest of {len(tries)} tries"
    if tries:
        yield Observation(
            about=flow,
            quantity="latency",
            unit="seconds",
            value=min(tries),
            at=time.time(),
            busy=True,
            evidence=Evidence("cuMemcpyAsync", text),
        )


def _moved(about: str, size: float) -> Observation:
    evidence = Evidence("cuMemcpyAsync", f"{size:.0f} bytes in all")
    return Observation(about=about, quantity="bytes_moved", unit="bytes", value=size, at=time.time(), evidence=evidence)


def as_size(size: int) -> str:
    """Format bytes: "64 MiB"."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
