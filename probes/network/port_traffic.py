"""Traffic through NIC ports: the byte counters, and their highest rate over one second while jobs run.

It reads existing counters and sends no traffic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from ...models.facts.records import Evidence, Observation, Record
from ..host.host import Host, Unreadable
from ..sysfs.class_devices import devices, is_virtual
from ..sysfs.counter_files import read_counters
from ..sysfs.counter_peaks import Peaks, words
from .net import DEVICES as NETWORK_DEVICES
from .rdma import DEVICES

# Bytes per unit: four for InfiniBand counters (InfiniBand Architecture Specification 1, 16.1.3.5), one for efa.
COUNTERS: Mapping[str, int] = {
    "counters/port_xmit_data": 4,
    "counters/port_rcv_data": 4,
    "hw_counters/tx_bytes": 1,
    "hw_counters/rx_bytes": 1,
}
_OF_NETWORK_DEVICES = ("statistics/rx_bytes", "statistics/tx_bytes")


def read_traffic(host: Host) -> Iterator[Record]:
    """Yield the byte counters of all RDMA ports, and of all network devices on hardware."""
    in_bytes = {path.rpartition("/")[2]: unit for path, unit in COUNTERS.items()}
    for device, folder in (yield from devices(host, DEVICES, "Rdma")):
        for port in _list(host, f"{folder}/ports"):
            yield from read_counters(
                host, "Port.counters", f"{device}/{port}", f"{folder}/ports/{port}", COUNTERS, in_bytes
            )
    for name, folder in (yield from devices(host, NETWORK_DEVICES, "Net")):
        if not is_virtual(folder):
            yield from read_counters(host, "Net.counters", name, folder, _OF_NETWORK_DEVICES, in_bytes)


class PortTraffic:
    """Samples the port counters and keeps the highest rate of each port until peaks() is called."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._files: list[tuple[str, str, int]] = []
        self._peaks = Peaks()

    def sample(self, host: Host) -> Iterable[Record]:
        """Take one sample. The service calls it once a second while a job runs; it yields no records."""
        self._files = self._files or list(_found(host))
        for port, path, unit in self._files:
            count = None
            with suppress(Unreadable, ValueError):
                count = int(host.read(path) or "none") * unit
            self._peaks.sample(port, path, self._monotonic(), count)
        return ()

    def peaks(self, host: Host) -> Iterator[Observation]:
        """Yield the highest rate of each port since the last call."""
        self._files = []  # list the ports again, because they can change
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
