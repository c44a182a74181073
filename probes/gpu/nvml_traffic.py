"""How much jobs send over NVLink: the most bytes that pass a GPU's links in one direction in any second.

The driver counts them; nothing is moved for it. It is asked once a GPU and second, for all links at once: each alone
would be 36 numbers of a GPU. Runs in the service's child (calls.py), which has the driver open anyway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from ...models.facts.records import Evidence, Observation, Record
from ..sysfs.counter_peaks import Peaks, words
from .nvml_library import Library, Refused
from .nvml_threads import opened, seconds

ALL_LINKS = 0xFFFFFFFF  # as the scope of a field (nvml.h)
NVLINK_DATA: Mapping[str, int] = {"nvlink_tx_bytes": 138, "nvlink_rx_bytes": 139}  # KiB of data (nvml.h)
_LOOK = 1.0  # seconds between two looks


class Looking:
    """At all GPUs once a second, in a thread, until nobody wants it any more."""

    def __init__(
        self, library: Library, gpus: Mapping[str, Any], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._until = 0.0
        self._library, self._gpus, self._monotonic = library, gpus, monotonic
        self._peaks, self._lock = Peaks(), Lock()
        self._thread = Thread(target=self._run, daemon=True)

    @property
    def ended(self) -> bool:
        """Whether it looks no more."""
        return not self._thread.is_alive()

    def go_on(self, seconds: float) -> None:
        """For so long from now; the first time it begins."""
        self._until = self._monotonic() + seconds
        if self._thread.ident is None:
            self._thread.start()

    def look(self) -> None:
        """Once."""
        for gpu, handle in self._gpus.items():
            with suppress(Refused):  # it is lost, or has no NVLinks: others say so
                said = self._library.values(handle, [(number, ALL_LINKS) for number in NVLINK_DATA.values()])
                now = self._monotonic()
                for (number, _), value in said.items():
                    if not isinstance(value, Refused):
                        with self._lock:
                            self._peaks.sample(gpu, f"NVML field {number}", now, int(value) * 1024)

    def taken(self) -> Iterator[Observation]:
        """The highest rate of each GPU since this was asked last."""
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
            self.look()
            time.sleep(_LOOK)


_looking: list[Looking] = []  # at most one a process


def peaks(lasts: str) -> Iterator[Record]:
    """What was seen since this was asked last; and it is looked on for `lasts` seconds more."""
    if _looking and _looking[0].ended:
        yield from _looking.pop().taken()
    if not _looking and (new := looking()):
        _looking.append(new)
    for one in _looking:
        one.go_on(float(lasts))
        yield from one.taken()


def looking(monotonic: Callable[[], float] = time.monotonic) -> Looking | None:
    """At the GPUs that answer, not begun yet; None where the driver cannot be used, which others say (nvml.py)."""
    ready = opened(time.monotonic() + seconds())
    if not isinstance(ready, tuple):
        return None
    library, driver = ready
    gpus: dict[str, Any] = {}
    for index in range(driver.fields["gpus"]):
        with suppress(Refused):
            gpus[f"gpu{index}"] = library.ask("DeviceGetHandleByIndex", index)
    return Looking(library, gpus, monotonic)
