"""Memory access latency, from following a chain of pointers that no prefetcher can predict.

Python is too slow to follow the chain, so libc's tfind() (search.h) does it: it descends a binary tree, and a tree
with only right children is a list. glibc (misc/tsearch.c) and musl (src/search/tfind.c) have the same node layout:
pointers to the key, the left and the right child.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from contextlib import suppress

from ....models.facts.units import MIB
from .page_placement import PRIVATE

_LINE = 64  # bytes; one node per cache line
_NODES = 1 << 18
_FLUSH = 256 * MIB  # bytes written to evict the list from caches: more than a core's share of the largest cache
_TRIES = 3


def latency(memory: set[int], reader: set[int]) -> tuple[float, str]:
    """Return seconds per access from the `reader` CPUs to memory of the `memory` CPUs' node, and the method as text."""
    import numpy

    os.sched_setaffinity(0, memory)
    with mmap.mmap(-1, _NODES * _LINE, PRIVATE) as region:
        with suppress(AttributeError, OSError):
            region.madvise(mmap.MADV_HUGEPAGE)  # else TLB misses add to the latency
        nodes = numpy.frombuffer(region, numpy.uint64).reshape(_NODES, _LINE // 8)
        base = int(nodes.ctypes.data)
        order = numpy.random.default_rng(1).permutation(_NODES).astype(numpy.uint64)
        key = ctypes.create_string_buffer(b"a")
        nodes[:, 0] = ctypes.addressof(key)
        nodes[order[:-1], 2] = numpy.uint64(base) + order[1:] * numpy.uint64(_LINE)  # the last node has no child
        first = base + int(order[0]) * _LINE
        flush = numpy.zeros(_FLUSH, numpy.uint8)
        os.sched_setaffinity(0, reader)
        seconds = min(_walk(first, flush) for _ in range(_TRIES))
        del nodes  # the region cannot be closed while an array refers to it
    return seconds / _NODES, f"{_NODES} lines of {_LINE} bytes in random order, best of {_TRIES} walks"


def _walk(first: int, flush: object) -> float:
    """Return the seconds from the first node to the last. The searched key is greater than all keys."""
    libc = ctypes.CDLL(None)
    root = ctypes.c_void_p(first)
    compare = ctypes.cast(libc.strcmp, ctypes.c_void_p)
    libc.tfind.restype = ctypes.c_void_p
    flush.fill(2)  # type: ignore[attr-defined]
    start = time.perf_counter()
    libc.tfind(b"b", ctypes.byref(root), compare)
    return time.perf_counter() - start
