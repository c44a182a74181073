"""How fast a NUMA node's memory copies: `copy` runs in a child, pinned to the node's own CPUs."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator

from ..models.report import Report
from ..models.said import Evidence, Flow, NotChecked, Observation, Said
from ..models.units import MIB
from .host import Host
from .live import Live
from .parsers import cpu_list

SIZE = 64 * MIB  # one buffer of one thread: several times a core's share of the last cache
_THREADS = 4  # enough to pass what one core can ask for, few enough not to be in the way
_PASSES = 4
DEADLINE = 5.0  # seconds

Source = Callable[[Host], Iterator[Said]]


def copies(report: Report) -> dict[str, Source]:
    """A source for each NUMA node of the report, by its name."""
    return {device.id: _copy_of(device.id) for device in report.topology.devices if device.kind == "numa"}


def _copy_of(node: str) -> Source:
    def host_memory(host: Host) -> Iterator[Said]:
        yield from host.call("host_memory", node, deadline=DEADLINE)

    return host_memory


def copy(node: str) -> Iterator[Said]:
    """Bytes per second that a few threads copy from and to memory of their own node; the best of a few passes.

    Each thread's buffers are its own and first touched by it, so the kernel places them on its node. A byte copied
    counts once (STREAM counts it twice: read and written). A node without CPUs is not measured.
    """
    cpus = set(cpu_list(Live().read(f"sys/devices/system/node/node{node.removeprefix('numa')}/cpulist") or ""))
    if not cpus:
        return
    allowed = os.sched_getaffinity(0) & cpus
    if not allowed:
        why = f"this process may not run on any CPU of {node}"
        yield NotChecked(what="rate of copy", subject=node, why=why, how="widen its cpuset")
        return
    os.sched_setaffinity(0, allowed)
    threads = min(_THREADS, len(allowed))
    rate = max(_passes(threads))
    text = f"{threads} threads, {SIZE // MIB} MiB each, best of {_PASSES} passes"
    evidence, now = Evidence("memmove", text), time.time()
    yield Observation(
        about=Flow("copy", (node,), SIZE), quantity="rate", unit="bytes_per_second", value=rate, at=now, busy=True,
        evidence=evidence,
    )  # fmt: skip
    moved = float(threads * SIZE * (_PASSES + 1))
    yield Observation(about=node, quantity="bytes_moved", unit="bytes", value=moved, at=now, evidence=evidence)


def _passes(threads: int) -> list[float]:
    """Bytes per second of each pass, after one that touches the pages; the slowest thread ends a pass."""
    gate = threading.Barrier(threads + 1)

    def work() -> None:
        target, source = ctypes.create_string_buffer(SIZE), ctypes.create_string_buffer(SIZE)
        ctypes.memset(source, 1, SIZE)  # untouched pages are one page of zeros, which no copy reads from memory
        for _ in range(_PASSES + 1):
            gate.wait()
            ctypes.memmove(target, source, SIZE)  # releases the interpreter lock
            gate.wait()

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    rates = []
    for _ in range(_PASSES + 1):
        gate.wait()
        start = time.perf_counter()
        gate.wait()
        rates.append(threads * SIZE / (time.perf_counter() - start))
    return rates[1:]
