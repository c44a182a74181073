"""How long one access to memory takes: a walk along pointers that no prefetcher can guess.

Python is too slow for such a walk, and libc has one: tfind() of search.h goes down a binary tree, and a tree whose
nodes have only right children is a list. glibc (misc/tsearch.c) and musl (src/search/tfind.c) lay out a node alike:
pointers to the key, the left and the right child.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from contextlib import suppress

from ....models.facts.units import MIB

_LINE = 64  # bytes; a node a cache line
_NODES = 1 << 18
_FLUSH = 256 * MIB  # written after the list was, so that no cache holds it: more than a core's share of the largest
_TRIES = 3


def latency(memory: set[int], reader: set[int]) -> tuple[float, str]:
    """Seconds of one access from the `reader` CPUs to memory near the `memory` CPUs, and how it was measured."""
    import numpy

    os.sched_setaffinity(0, memory)
    with mmap.mmap(-1, _NODES * _LINE) as region:
        with suppress(AttributeError, OSError):
            region.madvise(mmap.MADV_HUGEPAGE)  # else misses of the TLB count too
        nodes = numpy.frombuffer(region, numpy.uint64).reshape(_NODES, _LINE // 8)
        base = int(nodes.ctypes.data)
        order = numpy.random.default_rng(1).permutation(_NODES).astype(numpy.uint64)
        key = ctypes.create_string_buffer(b"a")
        nodes[:, 0] = ctypes.addressof(key)
        nodes[order[:-1], 2] = numpy.uint64(base) + order[1:] * numpy.uint64(_LINE)  # the last one's child stays 0
        first = base + int(order[0]) * _LINE
        flush = numpy.zeros(_FLUSH, numpy.uint8)
        os.sched_setaffinity(0, reader)
        seconds = min(_walk(first, flush) for _ in range(_TRIES))
        del nodes  # the region cannot be closed while an array looks at it
    return seconds / _NODES, f"{_NODES} lines of {_LINE} bytes in random order, best of {_TRIES} walks"


def _walk(first: int, flush: object) -> float:
    """Seconds from the first node to the last: the key that is looked for is greater than all."""
    libc = ctypes.CDLL(None)
    root = ctypes.c_void_p(first)
    compare = ctypes.cast(libc.strcmp, ctypes.c_void_p)
    libc.tfind.restype = ctypes.c_void_p
    flush.fill(2)  # type: ignore[attr-defined]
    start = time.perf_counter()
    libc.tfind(b"b", ctypes.byref(root), compare)
    return time.perf_counter() - start
