"""The probe `host_memory`: copy rate and access latency within and between NUMA nodes.

Threads are pinned and place their pages by first touch. The probe then checks the actual placement.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from itertools import permutations
from typing import TYPE_CHECKING, Any

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB
from ....models.inventory.sockets import with_cpus
from ....models.report import Report
from ...host.host import Unreadable
from ...host.live import Live
from ...parsing.parsers import cpu_list
from ..probe import Probe, Scope
from .memory_latency import latency
from .page_placement import misplaced, pages

if TYPE_CHECKING:
    import numpy

    Bytes = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

SIZE = 64 * MIB  # bytes of one buffer of one thread: several times a core's share of the last-level cache
THREADS = 4  # enough to exceed the rate of one core, few enough not to disturb each other
_PASSES = 8
_KINDS = frozenset({("numa",), ("numa", "numa")})
_LEAST = 20e9  # minimum bytes per second of four threads, to plan the time of a run
_STARTING = 0.4  # seconds: start of a process with numpy; for each path, touching of buffers and the latency test


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield one probe for each NUMA node; at "full" also one for all paths between nodes."""
    nodes = [name for name in with_cpus(report.topology) if name in scope.ends]
    for node in nodes:
        yield _probe((node,), 1)
    if scope.effort == "full" and len(nodes) > 1:
        yield _probe(tuple(nodes), len(nodes) * (len(nodes) - 1))


def _probe(nodes: tuple[str, ...], paths: int) -> Probe:
    moved = paths * THREADS * SIZE * (_PASSES + 1)
    seconds = _STARTING * (1 + paths) + moved / _LEAST
    return Probe(name="host_memory", args=nodes, kinds=_KINDS, seconds=seconds, bytes=moved, deadline=5 + 4 * seconds)


def copies(*nodes: str) -> Iterator[Record]:
    """Measure rate and latency within one node, or between several nodes.

    The result is the best of several passes. A copied byte counts once (STREAM counts it twice: read and written).
    Between two nodes the threads run on the target node. Nodes without CPUs are not measured, because no CPU
    can place their pages by first touch.
    """
    allowed = {node: os.sched_getaffinity(0) & set(_cpus(node)) for node in nodes if _cpus(node)}
    for node in [node for node, cpus in allowed.items() if not cpus]:
        del allowed[node]
        why = f"this process may not run on any CPU of {node}"
        yield NotChecked(
            what="rate of copy", subject=node, reason=Reason.OTHER_CONTEXT, detail=why, how="widen its cpuset"
        )
    paths = [(node, node) for node in allowed] if len(nodes) == 1 else permutations(allowed, 2)
    for source, target in paths:
        yield from _measure_path(source, target, allowed)


def _cpus(node: str) -> tuple[int, ...]:
    try:
        return tuple(cpu_list(Live().read(f"sys/devices/system/node/node{node.removeprefix('numa')}/cpulist") or ""))
    except (Unreadable, ValueError):
        return ()


def _measure_path(source: str, target: str, cpus: dict[str, set[int]]) -> Iterator[Record]:
    """Measure the copy from `source` to `target` memory, and the latency of `source` memory from `target` CPUs."""
    ends = (source,) if source == target else (source, target)
    name = "-".join(ends)
    import numpy  # noqa: F401  # its 15 MB of pages must exist before pages() counts

    threads = min(THREADS, len(cpus[source]), len(cpus[target]))
    before = pages()
    rates, placement_error = _passes(
        threads, cpus[source], cpus[target], lambda: misplaced(before, pages(), source, target)
    )
    if placement_error:
        yield NotChecked(
            what="rate of copy",
            subject=name,
            reason=Reason.NOT_MEASURED,
            detail=placement_error,
            how="free memory there, or lift the policy",
        )
        return
    yield from _copy_observations(name, ends, threads, max(rates))
    seconds, how = latency(cpus[source], cpus[target])
    yield Observation(
        about=Flow("read", ends),
        quantity="latency",
        unit="seconds",
        value=seconds,
        at=time.time(),
        busy=True,
        evidence=Evidence("tfind", how),
    )


def _copy_observations(name: str, ends: tuple[str, ...], threads: int, rate: float) -> Iterator[Record]:
    text = f"{threads} threads, {SIZE // MIB} MiB each, best of {_PASSES} passes"
    now, evidence = time.time(), Evidence("numpy.copyto", text)
    yield Observation(
        about=Flow("copy", ends, SIZE),
        quantity="rate",
        unit="bytes_per_second",
        value=rate,
        at=now,
        busy=True,
        evidence=evidence,
    )
    moved = float(threads * SIZE * (_PASSES + 1))
    yield Observation(about=name, quantity="bytes_moved", unit="bytes", value=moved, at=now, evidence=evidence)


def _passes(threads: int, source: set[int], target: set[int], placed: Any) -> tuple[list[float], str | None]:
    """Return bytes per second of each pass after a warm-up pass, and the error of `placed`.

    A pass ends with its slowest thread.
    """
    import numpy

    gate = threading.Barrier(threads + 1)
    spans = [(0.0, 0.0)] * threads  # start and end of the pass, by thread

    def work(number: int) -> None:
        source_buffer = _touched(source, 1)
        target_buffer = _touched(target, 2)  # the thread stays on the target node
        gate.wait()
        for _ in range(_PASSES + 1):
            gate.wait()
            start = time.perf_counter()  # timed in the thread: the main thread may be scheduled late
            numpy.copyto(target_buffer, source_buffer)  # releases the interpreter lock
            spans[number] = start, time.perf_counter()
            gate.wait()

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for worker in workers:
        worker.start()
    gate.wait()
    placement_error = placed()
    rates = []
    for _ in range(_PASSES + 1):
        gate.wait()
        gate.wait()
        starts, ends = zip(*spans, strict=True)
        rates.append(threads * SIZE / (max(ends) - min(starts)))
    for worker in workers:
        worker.join()
    return rates[1:], placement_error


def _touched(cpus: set[int], value: int) -> Bytes:
    """Pin this thread to the CPUs and return a buffer with pages on their node.

    The buffer is written, because untouched pages all map to one page of zeros, which copies do not read from memory.
    """
    import numpy

    os.sched_setaffinity(0, cpus)
    buffer = numpy.empty(SIZE, numpy.uint8)
    buffer.fill(value)
    return buffer
