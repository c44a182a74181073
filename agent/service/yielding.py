"""Long work in short bursts, so that whoever needs the processor need not wait for us."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

_BURST = 0.01  # seconds of a processor after which others come first
_OBJECTS = 20_000  # made and not freed, after which the collector looks at them
_WAITED = 1.0  # seconds after which somebody wants to be told that we live, although we only wait


def look_less_for_garbage() -> None:
    """What is there by now will stay, the modules above all: the collector need not go through it again.

    That took the longest bursts of all. A cycle makes some ten thousand objects, nearly all without circles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS, 10, 10)


def in_bursts(
    rest: Callable[[], None],
    worked: Callable[[], float] = time.process_time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
    """What to call at every step of the work: now and then it calls `rest`. Both clocks are in seconds.

    Each rest costs more than the time that it takes: what comes after it finds none of its data in the caches.
    """
    used, at = worked(), monotonic()

    def step() -> None:
        nonlocal used, at
        if worked() - used >= _BURST or monotonic() - at >= _WAITED:
            rest()
            used, at = worked(), monotonic()

    return step
