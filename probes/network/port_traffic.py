"""How much jobs send through the ports of NICs: the most bytes that pass in one direction in any second.

Read from counters that cost nothing to read; nothing is moved for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from ...models.facts.records import Evidence, Observation, Record
from ..host.host import Host, Unreadable
from ..sysfs.counter_peaks import Peaks, words
from .rdma import DEVICES

# Units of four bytes (InfiniBand Architecture Specification 1, 16.1.3.5); the efa driver has bytes.
COUNTERS: Mapping[str, int] = {
    "counters/port_xmit_data": 4,
    "counters/port_rcv_data": 4,
    "hw_counters/tx_bytes": 1,
    "hw_counters/rx_bytes": 1,
}


class PortTraffic:
    """Looks again and again; between two asks it remembers the highest rate of each port."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._files: list[tuple[str, str, int]] = []
        self._peaks = Peaks()

    def look(self, host: Host) -> Iterable[Record]:
        """A source that is asked once a second while a job runs, and says nothing yet."""
        self._files = self._files or list(_found(host))
        for port, path, unit in self._files:
            count = None
            with suppress(Unreadable, ValueError):
                count = int(host.read(path) or "none") * unit
            self._peaks.sample(port, path, self._monotonic(), count)
        return ()

    def peaks(self, host: Host) -> Iterator[Observation]:
        """The highest rate of each port since this was asked last."""
        self._files = []  # ports come and go
        for port, (rate, path) in self._peaks.taken().items():
            yield Observation(
                about=port,
                quantity="port_traffic",
                unit="bytes_per_second",
                value=rate,
                at=host.now(),
                busy=True,
                evidence=Evidence(path, words(rate)),
            )


def _found(host: Host) -> Iterator[tuple[str, str, int]]:
    for device in _list(host, DEVICES):
        for port in _list(host, f"{DEVICES}/{device}/ports"):
            folder = f"{DEVICES}/{device}/ports/{port}"
            yield from ((f"{device}/{port}", f"{folder}/{name}", unit) for name, unit in COUNTERS.items())


def _list(host: Host, path: str) -> list[str]:
    try:
        return host.list(path)
    except Unreadable:
        return []
