"""Runs of copies that a call was asked for, one after the other: what each reaches, and what could not be measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import KIB, MIB
from .concurrent_copies import SMALL, Hung, Lane, rates
from .copy_request import CopyRequest, Pace, Run, parsed
from .cuda_driver import Cuda, Device, Refused
from .cuda_gpus import closing, opened

_LATENCIES = 5  # tries, of which the shortest counts


class Bench(Protocol):
    """The memory on which a probe copies."""

    counted: int  # how often each byte that is copied counts in a rate: twice in one memory, as read and as written

    def prepare(self, device: Device) -> None:
        """Take the memory of a GPU. Raises Refused."""

    def lanes(self, run: Run) -> list[Lane]:
        """The copies of a run; none: it has no place on this machine. Raises Refused."""

    def flows(self, run: Run, size: int | None) -> list[Flow]:
        """What its rates are about."""

    def wake(self, run: Run, lanes: Sequence[Lane]) -> None:
        """Whatever its links need before they run as they can. Raises Refused."""

    def look(self, run: Run, lanes: Sequence[Lane]) -> list[Record]:
        """How its links run now that bytes move."""

    def close(self) -> None:
        """Give back what is not the GPUs'."""


Make: TypeAlias = Callable[[Cuda, CopyRequest, Mapping[str, Device]], Bench]


def measured(what: str, words: Sequence[str], make: Make) -> Iterator[Record]:
    """What the runs reach, as they end. `what` is the name of the probe, `make` sets up its bench."""
    request = parsed(words)
    try:
        cuda = Cuda()
    except Refused as refusal:
        yield NotChecked(what=what, subject="node", reason=refusal.reason, detail=str(refusal), how=refusal.how)
        return
    devices, lost = opened(cuda, request, what)
    yield from lost
    bench, moved, usable = make(cuda, request, devices), 0.0, len(devices)
    known: dict[tuple[object, str], float] = {}  # what was last said of links, which are seen in many runs
    try:
        for name, device in [*devices.items()]:
            try:
                bench.prepare(device)
            except Refused as refusal:
                yield NotChecked(what=what, subject=name, reason=refusal.reason, detail=str(refusal), how=refusal.how)
                devices.pop(name).close()
        usable = len(devices)
        for run in request.runs:
            for said in _measured(what, _left(run, request, devices), bench, request.pace, devices):
                if isinstance(said, Observation) and said.quantity == "bytes_moved":
                    moved += said.value
                elif not _is_known(said, known):
                    yield said
    finally:
        if len(devices) == usable:  # else a copy hangs that host memory is part of: it goes with this process
            bench.close()
        closing(devices)
    yield _moved("node" if len(request.gpus) > 1 else next(iter(request.gpus), "node"), moved)


def _is_known(said: Record, known: dict[tuple[object, str], float]) -> bool:
    """Whether the same was said of a link or a GPU before; else it is known from now on."""
    if not isinstance(said, Observation) or isinstance(said.about, Flow):
        return False
    before = known.get((said.about, said.quantity))
    known[said.about, said.quantity] = said.value
    return before == said.value


def _left(run: Run, request: CopyRequest, devices: Mapping[str, Device]) -> Run:
    """The copies of a run between what is there; of several at once never one alone."""
    left = tuple(ends for ends in run if all(end in devices for end in ends if end in request.gpus))
    return left if len(left) > 1 or len(run) == 1 else ()


def _measured(what: str, run: Run, bench: Bench, pace: Pace, devices: dict[str, Device]) -> Iterator[Record]:
    """What a run reaches. GPUs whose copies hang are taken out of `devices`: the others go on without them."""
    if not run:
        return
    try:
        lanes = bench.lanes(run)
        if not lanes:
            return
        bench.wake(run, lanes)
        seen: list[Record] = []
        found, moved = [0.0] * len(lanes), 0.0
        for _ in range(pace.tries):
            now = rates(lanes, pace.seconds, lambda: seen.__setitem__(slice(None), bench.look(run, lanes)))
            found = [max(pair) for pair in zip(found, now, strict=True)]
            moved += sum(lane.stream.queued * lane.size for lane in lanes)
        yield from seen
        yield from _rates(bench, run, lanes, found, pace)
        yield _moved("node", moved)
        if len(run) == 1 and len(run[0]) == 2:
            yield from _latency(bench, run, lanes[0])
    except Refused as refusal:
        hung = refusal.lanes if isinstance(refusal, Hung) else ()
        for end in (end for place in hung for end in run[place]):
            devices.pop(end, None)
        about = bench.flows(run, None)[hung[0] if hung else 0].subject
        why = str(refusal) if len(run) == 1 else f"{len(run)} copies at the same moment: {refusal}"
        yield NotChecked(what=what, subject=about, reason=refusal.reason, detail=why, how=refusal.how)


def _rates(bench: Bench, run: Run, lanes: Sequence[Lane], found: Sequence[float], pace: Pace) -> Iterator[Observation]:
    manner = "alone" if len(run) == 1 else f"{len(run)} at the same moment"
    for flow, lane, rate in zip(bench.flows(run, lanes[0].size), lanes, found, strict=True):
        text = f"copies of {as_size(lane.size)}, {manner}, best of {pace.tries} tries of {pace.seconds * 1e3:.0f} ms"
        yield Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=bench.counted * rate,
            at=time.time(),
            busy=True,
            evidence=Evidence("cuMemcpyAsync", text),
        )


def _latency(bench: Bench, run: Run, lane: Lane) -> Iterator[Observation]:
    (flow,) = bench.flows(run, SMALL)
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
    """ "64 MiB" """
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
