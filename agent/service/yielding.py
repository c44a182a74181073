"""Split long work into short CPU bursts, so that other processes do not wait for the service."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_BURST = 0.01  # seconds of CPU time until the next sleep
_OBJECTS = 20_000  # threshold of the garbage collector: objects allocated and not freed
_WAITED = 1.0  # seconds without a burst, after which `rest` runs anyway: it feeds the watchdog


def relax_garbage_collection() -> None:
    """Exclude all present objects from garbage collection and raise its threshold.

    Most of these objects are modules, which stay. Collecting them caused the longest CPU bursts. A cycle allocates
    some ten thousand objects, nearly all without reference cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS, 10, 10)


def yield_after_bursts(
    rest: Callable[[], None],
    cpu_time: Callable[[], float] = time.process_time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
    """Return a function to call after every step of the work. It calls `rest` after each burst of CPU time.

    `cpu_time` is CPU time and `monotonic` wall time, both in seconds. Rests are rare because each one costs more than
    its own time: afterwards the CPU caches are cold.
    """
    used, at = cpu_time(), monotonic()

    def step() -> None:
        nonlocal used, at
        passed = monotonic() - at
        if passed >= _BURST and (cpu_time() - used >= _BURST or passed >= _WAITED):  # cpu_time() is a system call
            rest()
            used, at = cpu_time(), monotonic()

    return step
