"""Collectives of the NCCL library in this process. Only this module imports nccl (package nccl4py, extra "nccl").

One process with one thread runs all ranks, like nccl-tests with -g.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ....models.bandwidth.collectives import bus_bandwidth
from ....models.facts.reason import Reason
from .cuda_driver import CudaError, Device, first_line
from .nccl_algorithm import LOG, TIMES, NcclRun

EXTRA = "pip install 'linkgauge[nccl]' 'nccl4py[cu12]' (cu13 for a driver of CUDA 13), or build nccl-tests"
_FLOAT, _SUM = 7, 0  # ncclFloat32, ncclSum
_WARM = 3


class Nccl:
    """libnccl.so.2 with a rank on each of `devices`, which must be open. Raises CudaError."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._log = os.memfd_create("nccl")
        os.environ.update({**LOG, "NCCL_DEBUG_FILE": f"/proc/self/fd/{self._log}"})
        try:
            from nccl.bindings import nccl  # loads the library on first use
        except (ImportError, OSError, RuntimeError) as missing:
            raise CudaError(
                f"the package nccl4py does not load: {first_line(missing)}", EXTRA, reason=Reason.NOT_INSTALLED
            ) from None
        self._nccl: Any = nccl
        self._devices = devices
        self._version = _version(self._call("get_version"))
        self._ranks = self._call("comm_init_all", len(devices), [int(device.handle) for device in devices])
        self._streams = [device.stream().handle for device in devices]

    def bandwidths(self, op: str, sizes: Sequence[int], gpus: Sequence[str]) -> NcclRun:
        """Return the bandwidth of each size; `gpus` are the addresses of the devices. Raises CudaError."""
        buffers = [(device.take(max(sizes)), device.take(max(sizes))) for device in self._devices]
        rates = {}
        for size in sizes:
            self._seconds(op, size, buffers, _WARM)
            seconds = self._seconds(op, size, buffers, TIMES) / TIMES
            rates[size] = bus_bandwidth(op, len(self._devices), size, seconds)
        log = os.pread(self._log, 1 << 24, 0).decode("utf-8", "replace")
        return NcclRun(f"NCCL {self._version}", rates, gpus, log)

    def close(self) -> None:
        """Abort the ranks, without waiting for each other."""
        for rank in self._ranks:
            self._call("comm_abort", rank)
        os.close(self._log)

    def _seconds(self, op: str, size: int, buffers: Sequence[tuple[int, int]], times: int) -> float:
        """Return the seconds of `times` operations in sequence, by the clock of the slowest GPU."""
        marks = [(device.event(), device.event()) for device in self._devices]
        self._mark([begin for begin, _ in marks])
        for _ in range(times):
            self._call("group_start")
            for rank, stream, (source, target) in zip(self._ranks, self._streams, buffers, strict=True):
                if op == "alltoall":
                    count = size // 4 // len(self._devices)
                    self._call("allto_all", source, target, count, _FLOAT, rank, int(stream))
                else:
                    self._call("all_reduce", source, target, size // 4, _FLOAT, _SUM, rank, int(stream))
            self._call("group_end")
        self._mark([end for _, end in marks])
        for device, stream in zip(self._devices, self._streams, strict=True):
            device.cuda.call("StreamSynchronize", stream)
        return max(device.cuda.seconds(*pair) for device, pair in zip(self._devices, marks, strict=True))

    def _mark(self, events: Sequence[Any]) -> None:
        for device, stream, event in zip(self._devices, self._streams, events, strict=True):
            device.use()
            device.cuda.call("EventRecord", event, stream)

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nccl, name)(*arguments)
        except (AttributeError, OSError, RuntimeError) as missing:  # libnccl.so.2 or one of its functions is missing
            raise CudaError(f"NCCL: {name}: {first_line(missing)}", EXTRA, reason=Reason.NOT_INSTALLED) from None
        except self._nccl.NCCLError as error:
            raise CudaError(f"NCCL: {name}: {first_line(error)}", reason=Reason.OTHER) from None


def _version(number: int) -> str:
    """Convert 22703 to "2.27.3"."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
