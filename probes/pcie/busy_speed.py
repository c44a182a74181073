"""The trained speed of links while jobs move data over them. Idle links save power at lower speeds.

It sends no traffic.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ...models.facts.units import as_transfers
from ..host.host import Host, Unreadable
from ..host.live import Live
from ..network.port_traffic import COUNTERS
from ..parsing.parsers import PCI_ADDRESS, pcie_speed
from ..storage.disk_traffic import disk_bytes
from .power import is_asleep

_INTERVAL = 0.1  # seconds between two samples of the counters
BUSY = 50e6  # bytes per second: above management traffic, below the traffic of any job
DEADLINE = 5.0  # seconds


def read_link_load(host: Host) -> Iterator[Record]:
    """Yield the trained speed of each busy link; nothing for idle links.

    Under `--root` no link is known to be busy. links.py has read the speeds, so nothing is missed.
    """
    for record in host.call("link_load", deadline=DEADLINE):
        if not (isinstance(record, NotChecked) and record.reason is Reason.OTHER_CONTEXT):
            yield record


def sample() -> Iterator[Record]:
    """The call `link_load`: sample the counters twice, then yield the links above devices that moved bytes."""
    host = Live()
    before, start = byte_counts(host), time.monotonic()
    time.sleep(_INTERVAL)
    yield from busy_links(host, before, byte_counts(host), time.monotonic() - start)


def busy_links(host: Host, before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> Iterator[Record]:
    """Yield the trained speed of every link above a busy device. `before` and `after` are results of byte_counts()."""
    seen: set[str] = set()
    for folder, now in after.items():
        rate = (now - before.get(folder, now)) / seconds
        if rate >= BUSY:
            text = f"{rate / 1e6:.0f} MB/s through {folder.rpartition('/')[2]}"
            yield from _speeds(host, folder, text, seen)


def _speeds(host: Host, folder: str, text: str, seen: set[str]) -> Iterator[Record]:
    parts = folder.split("/")
    for depth, address in enumerate(parts, 1):
        if not PCI_ADDRESS.fullmatch(address) or address in seen:
            continue
        seen.add(address)
        function = "/".join(parts[:depth])
        if is_asleep(host, function):
            continue
        path = f"{function}/current_link_speed"
        try:
            speed = pcie_speed(host.read(path) or "Unknown")
        except (Unreadable, ValueError):
            continue  # links.py reports it
        if speed:
            evidence = Evidence(path, f"{as_transfers(speed)}, {text}")
            yield Observation(
                about=address,
                quantity="link_speed",
                unit="transfers_per_second",
                value=speed,
                at=host.now(),
                busy=True,
                evidence=evidence,
            )


def byte_counts(host: Host) -> Mapping[str, int]:
    """Return the bytes in and out since boot, by the sysfs folder of the network device, RDMA device or disk.

    Unreadable counters are left out. The counters of a network device do not include RDMA traffic of the same port.
    """
    counts: dict[str, int] = {}
    for kind, count in (("net", _net_bytes), ("infiniband", _rdma_bytes), ("block", _disk_bytes)):
        for name in host.list(f"sys/class/{kind}"):
            try:
                folder = host.resolve(f"sys/class/{kind}/{name}")
                if folder and "/virtual/" not in folder:
                    counts[folder] = count(host, folder)
            except (Unreadable, ValueError, IndexError):
                continue
    return counts


def _net_bytes(host: Host, folder: str) -> int:
    return sum(int(host.read(f"{folder}/statistics/{name}_bytes") or 0) for name in ("rx", "tx"))


def _rdma_bytes(host: Host, folder: str) -> int:
    """Return the bytes of all ports. EFA has its own counters."""
    total = 0
    for port in host.list(f"{folder}/ports"):
        for name, unit in COUNTERS.items():
            total += unit * int(host.read(f"{folder}/ports/{port}/{name}") or 0)
    return total


def _disk_bytes(host: Host, folder: str) -> int:
    return sum(disk_bytes(host, folder))
