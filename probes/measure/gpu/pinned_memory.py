"""Pinned host memory on one NUMA node, for the GPUs' copy engines.

First touch places the pages (kernel documentation, admin-guide/mm/numa_memory_policy), because most containers forbid
calls that set a policy. The actual placement is checked afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from contextlib import suppress

from ....models.facts.reason import Reason
from ...host.host import Unreadable
from ...host.live import Live
from ...parsing.parsers import cpu_list
from ..memory.page_placement import PRIVATE, misplaced, pages
from .cuda_driver import Cuda, CudaError

ANYWHERE = "host"  # for a kernel without NUMA nodes


class PinnedMemory:
    """`size` bytes on `node`, "numa0" or ANYWHERE. Raises CudaError if this process cannot allocate them there."""

    def __init__(self, cuda: Cuda, node: str, size: int) -> None:
        self._cuda = cuda
        before, allowed = pages(), os.sched_getaffinity(0)
        try:
            self._map = mmap.mmap(-1, size, PRIVATE)
        except (OSError, ValueError) as error:
            raise CudaError(f"{size >> 20} MiB of memory: {error}", reason=Reason.OTHER) from None
        with suppress(AttributeError, OSError):
            self._map.madvise(mmap.MADV_HUGEPAGE)  # fewer pages to pin
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        try:
            if node != ANYWHERE:
                os.sched_setaffinity(0, allowed & cpus_of(node))
            ctypes.memset(self.address, 1, size)
        except OSError:
            raise CudaError(
                f"this process may not run on any CPU of {node}", "widen its cpuset", reason=Reason.OTHER_CONTEXT
            ) from None
        finally:
            os.sched_setaffinity(0, allowed)
        if placement_error := None if node == ANYWHERE else misplaced(before, pages(), node):
            raise CudaError(
                f"memory of {node}: {placement_error}",
                "free memory there, or lift the policy",
                reason=Reason.NOT_MEASURED,
            )
        cuda.pinned(self.address, size)

    def close(self) -> None:
        """Release the pages. The mapping remains until the process ends, because ctypes refers to it."""
        self._cuda.unpinned(self.address)
        self._map.madvise(mmap.MADV_DONTNEED)


def cpus_of(node: str) -> set[int]:
    """Return the CPUs of a NUMA node; empty for a missing node or one without CPUs."""
    try:
        return set(cpu_list(Live().read(f"sys/devices/system/node/node{node.removeprefix('numa')}/cpulist") or ""))
    except (Unreadable, ValueError):
        return set()
