"""Bytes that block devices have read and written since boot (kernel documentation, block/stat)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...models.facts.records import Evidence, Observation, Record
from ..host.host import Host, Unreadable
from ..sysfs.class_devices import devices, is_virtual

BLOCK = "sys/class/block"
_SECTOR = 512  # unit of the statistics, independent of the device's sector size


class DiskBytes(NamedTuple):
    """Bytes since boot."""

    read: int
    written: int


def read_disk_traffic(host: Host) -> Iterator[Record]:
    """Yield two counters for each disk on hardware. Disks without statistics, and partitions, have none."""
    found = yield from devices(host, BLOCK, "disk_traffic")
    names = {name for name, _ in found}
    for name, folder in found:
        if is_virtual(folder) or folder.split("/")[-2] in names:
            continue
        try:
            moved = disk_bytes(host, folder)
        except Unreadable as refusal:
            yield refusal.missed("disk_traffic", name, f"{folder}/stat")
            continue
        except (ValueError, IndexError):
            continue
        for quantity, value in (("read_bytes", moved.read), ("written_bytes", moved.written)):
            evidence = Evidence(f"{folder}/stat", str(value))
            yield Observation(
                about=name, quantity=quantity, unit="bytes", value=float(value), at=host.now(), evidence=evidence
            )


def disk_bytes(host: Host, folder: str) -> DiskBytes:
    """The bytes that a disk or partition has read and written. Raises Unreadable, ValueError and IndexError."""
    cells = (host.read(f"{folder}/stat") or "").split()
    return DiskBytes(_SECTOR * int(cells[2]), _SECTOR * int(cells[6]))
