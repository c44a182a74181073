"""The performance state of NVIDIA GPUs. An idle GPU saves power in P8 with a slow memory clock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from ...gpu.nvml_library import Library, NvmlError
from ...parsing.nvml_enums import pci_address
from .concurrent_copies import Lane, rates
from .cuda_driver import Device

_UNKNOWN = 16  # and above: NVML_PSTATE_UNKNOWN is 32
# P0 to P3 are states for 3D and compute, P8 to P12 for video and rest (NVAPI reference, NV_GPU_PERF_PSTATE_ID).
_WORKING = 3
_LONGEST, _STEP = 1.0, 0.02  # seconds for a GPU to leave its idle state, and between two checks


class PerformanceState:
    """Reads the state of one GPU in NVML, as far as available."""

    SOURCE: ClassVar[str] = "nvmlDeviceGetPerformanceState"

    def __init__(self, address: str) -> None:
        self._nvml: Library | None = None
        with suppress(ImportError, NvmlError):
            library = Library()
            library.call("Init")
            self._handle = library.call("DeviceGetHandleByPciBusId", address)
            if pci_address(library.call("DeviceGetPciInfo", self._handle).busId) == address:
                self._nvml = library

    def now(self) -> int | None:
        """Return the number of the state, 0 for P0; None if unknown."""
        with suppress(NvmlError):
            if self._nvml and (state := int(self._nvml.call("DeviceGetPerformanceState", self._handle))) < _UNKNOWN:
                return state
        return None


class Waking:
    """Wakes GPUs before they are measured."""

    def __init__(self, devices: Mapping[str, Device]) -> None:
        self._states = {name: PerformanceState(device.address) for name, device in devices.items()}

    def wake(self, gpus: Sequence[str], lanes: Sequence[Lane]) -> None:
        """Copy until no GPU is in an idle state, for at most _LONGEST. A GPU that stays idle is not awaited again."""
        until = time.monotonic() + _LONGEST
        while asleep := [gpu for gpu in gpus if gpu in self._states and (self._states[gpu].now() or 0) > _WORKING]:
            if time.monotonic() > until:
                for gpu in asleep:
                    del self._states[gpu]
                return
            rates(lanes, _STEP)
