"""How fast the memory of NUMA nodes copies, in each and between them, and how long one access takes.

Threads are pinned, and pages are placed by who touches them first; where they really lie is looked up afterwards.
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
from ..probe import Probe, Wanted
from .memory_latency import latency
from .page_placement import misplaced, pages

if TYPE_CHECKING:
    import numpy

    Bytes = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]

SIZE = 64 * MIB  # one buffer of one thread: several times a core's share of the last cache
THREADS = 4  # enough to pass what one core can ask for, few enough not to be in the way
_PASSES = 8
_KINDS = frozenset({("numa",), ("numa", "numa")})
_LEAST = 20e9  # bytes per second that four threads copy at least: what a run takes is planned with it
_STARTING = 0.4  # seconds: a process with numpy; and for each way, buffers that are touched and the walk of the latency


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """One process for each NUMA node; at "full" one for the ways between them."""
    nodes = [name for name in with_cpus(report.topology) if name in wanted.ends]
    for node in nodes:
        yield _probe((node,), 1)
    if wanted.effort == "full" and len(nodes) > 1:
        yield _probe(tuple(nodes), len(nodes) * (len(nodes) - 1))


def _probe(nodes: tuple[str, ...], ways: int) -> Probe:
    moved = ways * THREADS * SIZE * (_PASSES + 1)
    seconds = _STARTING * (1 + ways) + moved / _LEAST
    return Probe(name="host_memory", args=nodes, kinds=_KINDS, seconds=seconds, bytes=moved, deadline=5 + 4 * seconds)


def copies(*nodes: str) -> Iterator[Record]:
    """Of one node its own rate and latency, of several the rates and latencies between them.

    The best of a few passes. A byte copied counts once (STREAM counts it twice: read and written). Between two nodes
    the threads run where the bytes arrive. Nodes without CPUs are not measured: nobody could touch their pages first.
    """
    allowed = {node: os.sched_getaffinity(0) & set(_cpus(node)) for node in nodes if _cpus(node)}
    for node in [node for node, cpus in allowed.items() if not cpus]:
        del allowed[node]
        why = f"this process may not run on any CPU of {node}"
        yield NotChecked(
            what="rate of copy", subject=node, reason=Reason.OTHER_CONTEXT, detail=why, how="widen its cpuset"
        )
    ways = [(node, node) for node in allowed] if len(nodes) == 1 else permutations(allowed, 2)
    for source, target in ways:
        yield from _way(source, target, allowed)


def _cpus(node: str) -> tuple[int, ...]:
    try:
        return tuple(cpu_list(Live().read(f"sys/devices/system/node/node{node.removeprefix('numa')}/cpulist") or ""))
    except (Unreadable, ValueError):
        return ()


def _way(source: str, target: str, cpus: dict[str, set[int]]) -> Iterator[Record]:
    """The copy from one node's memory to the other's, and the latency of reading the first from the second."""
    ends = (source,) if source == target else (source, target)
    name = "-".join(ends)
    import numpy  # noqa: F401  # its own pages, 15 MB and anywhere, come before those that are looked at

    threads = min(THREADS, len(cpus[source]), len(cpus[target]))
    before = pages()
    rates, wrong = _passes(threads, cpus[source], cpus[target], lambda: misplaced(before, pages(), source, target))
    if wrong:
        yield NotChecked(
            what="rate of copy",
            subject=name,
            reason=Reason.NOT_MEASURED,
            detail=wrong,
            how="free memory there, or lift the policy",
        )
        return
    text = f"{threads} threads, {SIZE // MIB} MiB each, best of {_PASSES} passes"
    now, evidence = time.time(), Evidence("numpy.copyto", text)
    yield Observation(
        about=Flow("copy", ends, SIZE),
        quantity="rate",
        unit="bytes_per_second",
        value=max(rates),
        at=now,
        busy=True,
        evidence=evidence,
    )
    moved = float(threads * SIZE * (_PASSES + 1))
    yield Observation(about=name, quantity="bytes_moved", unit="bytes", value=moved, at=now, evidence=evidence)
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


def _passes(threads: int, source: set[int], target: set[int], placed: Any) -> tuple[list[float], str | None]:
    """Bytes per second of each pass, after one that warms up; the slowest thread ends a pass. And what is wrong."""
    import numpy

    gate = threading.Barrier(threads + 1)
    spans = [(0.0, 0.0)] * threads  # of the pass, by thread: when it began and ended

    def work(number: int) -> None:
        given = _touched(source, 1)
        taken = _touched(target, 2)  # the thread stays where the bytes arrive
        gate.wait()
        for _ in range(_PASSES + 1):
            gate.wait()
            start = time.perf_counter()  # here: who waits for them may wait for a processor too, and see it late
            numpy.copyto(taken, given)  # releases the interpreter lock
            spans[number] = start, time.perf_counter()
            gate.wait()

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for worker in workers:
        worker.start()
    gate.wait()
    wrong = placed()
    rates = []
    for _ in range(_PASSES + 1):
        gate.wait()
        gate.wait()
        starts, ends = zip(*spans, strict=True)
        rates.append(threads * SIZE / (max(ends) - min(starts)))
    for worker in workers:
        worker.join()
    return rates[1:], wrong


def _touched(cpus: set[int], value: int) -> Bytes:
    """A buffer whose pages are of the node of those CPUs, on which this thread then runs.

    Untouched pages are one page of zeros, which no copy reads from memory.
    """
    import numpy

    os.sched_setaffinity(0, cpus)
    buffer = numpy.empty(SIZE, numpy.uint8)
    buffer.fill(value)
    return buffer
