"""The call `nvml_traffic`: peak NVLink traffic of jobs, in bytes per second and direction, over one second.

The sampler reads the driver's counters once per GPU and second; it sends no traffic. It reads the sum of all links,
because single links would be 36 values for each GPU. It runs in the service's child process, which has the driver open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from ...models.facts.records import Evidence, Observation, Record
from ..sysfs.counter_peaks import Peaks, words
from .nvml_library import Library, NvmlError
from .nvml_threads import open_driver, seconds

ALL_LINKS = 0xFFFFFFFF  # scope of a field (nvml.h)
NVLINK_DATA: Mapping[str, int] = {"nvlink_tx_bytes": 138, "nvlink_rx_bytes": 139}  # KiB of data (nvml.h)
_INTERVAL = 1.0  # seconds between two samples


class NvlinkSampler:
    """Samples all GPUs once a second, in a thread, until the time set by extend() ends."""

    def __init__(
        self, library: Library, gpus: Mapping[str, Any], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._until = 0.0
        self._library, self._gpus, self._monotonic = library, gpus, monotonic
        self._peaks, self._lock = Peaks(), Lock()
        self._thread = Thread(target=self._run, daemon=True)

    @property
    def ended(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def extend(self, seconds: float) -> None:
        """Continue for this time from now. The first call starts the thread."""
        self._until = self._monotonic() + seconds
        if self._thread.ident is None:
            self._thread.start()

    def sample(self) -> None:
        """Take one sample of each GPU."""
        for gpu, handle in self._gpus.items():
            with suppress(NvmlError):  # a GPU without NVLinks, or a lost GPU, which nvml.py reports
                answers = self._library.values(handle, [(number, ALL_LINKS) for number in NVLINK_DATA.values()])
                now = self._monotonic()
                for (number, _), value in answers.items():
                    if not isinstance(value, NvmlError):
                        with self._lock:
                            self._peaks.sample(gpu, f"NVML field {number}", now, int(value) * 1024)

    def taken(self) -> Iterator[Observation]:
        """Yield the peak rate of each GPU since the last call."""
        with self._lock:
            highest = self._peaks.taken()
        for gpu, (rate, where) in highest.items():
            yield Observation(
                about=gpu,
                quantity="nvlink_traffic",
                unit="bytes_per_second",
                value=rate,
                at=time.time(),
                busy=True,
                evidence=Evidence(where, words(rate)),
            )

    def _run(self) -> None:
        while self._monotonic() < self._until:
            self.sample()
            time.sleep(_INTERVAL)


_samplers: list[NvlinkSampler] = []  # at most one per process


def peaks(lasts: str) -> Iterator[Record]:
    """Yield the peaks since the last call, and continue sampling for `lasts` seconds."""
    if _samplers and _samplers[0].ended:
        yield from _samplers.pop().taken()
    if not _samplers and (new := new_sampler()):
        _samplers.append(new)
    for one in _samplers:
        one.extend(float(lasts))
        yield from one.taken()


def new_sampler(monotonic: Callable[[], float] = time.monotonic) -> NvlinkSampler | None:
    """Return a sampler of the usable GPUs, not started; None if the driver cannot be used (nvml.py reports that)."""
    opened = open_driver(time.monotonic() + seconds())
    if not isinstance(opened, tuple):
        return None
    library, driver = opened
    gpus: dict[str, Any] = {}
    for index in range(driver.fields["gpus"]):
        with suppress(NvmlError):
            gpus[f"gpu{index}"] = library.call("DeviceGetHandleByIndex", index)
    return NvlinkSampler(library, gpus, monotonic)
