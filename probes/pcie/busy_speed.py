"""The speed of links while a job's own bytes move over them: at rest it says nothing. Nothing is moved for it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from ...models.facts.records import Evidence, Observation, Record
from ...models.facts.units import as_transfers
from ..host.host import Host, Unreadable
from ..host.live import Live
from ..network.port_traffic import COUNTERS
from ..parsing.parsers import PCI_ADDRESS, pcie_speed

_INTERVAL = 0.1  # seconds between two looks at the counters
BUSY = 50e6  # bytes per second: more than management traffic, less than any job's
_SECTOR = 512  # bytes: the unit of block statistics (kernel documentation, block/stat)
DEADLINE = 5.0  # seconds, with the start of a process on a busy machine


def read_link_load(host: Host) -> Iterator[Record]:
    """Trained speeds of the links that are busy just now; nothing for those at rest."""
    yield from host.call("link_load", deadline=DEADLINE)


def sample() -> Iterator[Record]:
    """Look twice at the counters of this machine, and at the links of what moved bytes between."""
    host = Live()
    before, start = moved(host), time.monotonic()
    time.sleep(_INTERVAL)
    yield from busy_links(host, before, moved(host), time.monotonic() - start)


def busy_links(host: Host, before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> Iterator[Record]:
    """For each device whose counters moved: the trained speed of every link above it. Counters are those of moved()."""
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
        path = "/".join((*parts[:depth], "current_link_speed"))
        try:
            speed = pcie_speed(host.read(path) or "Unknown")
        except (Unreadable, ValueError):
            continue  # the reader of PCI functions has said so
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


def moved(host: Host) -> Mapping[str, int]:
    """Bytes in and out since boot, by the folder of the network device, RDMA device or disk.

    What cannot be read is left out. RDMA does not pass through the network device of its port.
    """
    moved: dict[str, int] = {}
    for kind, count in (("net", _net_bytes), ("infiniband", _rdma_bytes), ("block", _disk_bytes)):
        for name in host.list(f"sys/class/{kind}"):
            try:
                folder = host.resolve(f"sys/class/{kind}/{name}")
                if folder and "/virtual/" not in folder:
                    moved[folder] = count(host, folder)
            except (Unreadable, ValueError, IndexError):
                continue
    return moved


def _net_bytes(host: Host, folder: str) -> int:
    return sum(int(host.read(f"{folder}/statistics/{name}_bytes") or 0) for name in ("rx", "tx"))


def _rdma_bytes(host: Host, folder: str) -> int:
    """Of all ports; an EFA counts in its own way."""
    whole = 0
    for port in host.list(f"{folder}/ports"):
        for name, unit in COUNTERS.items():
            whole += unit * int(host.read(f"{folder}/ports/{port}/{name}") or 0)
    return whole


def _disk_bytes(host: Host, folder: str) -> int:
    cells = (host.read(f"{folder}/stat") or "").split()
    return _SECTOR * (int(cells[2]) + int(cells[6]))  # sectors read, sectors written
