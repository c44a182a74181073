"""Block devices and their partitions from sysfs (kernel documentation, ABI/stable/sysfs-block)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from ...models.facts.machine import Disk
from ...models.facts.records import Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, flag, word
from ..sysfs.class_devices import devices, pci_function
from ..sysfs.fact_reader import FactReader
from .nvme import CONTROLLERS

BLOCK = "sys/class/block"
_SECTOR = 512  # unit of `size`, independent of the device's sector size
_CONTROLLER = re.compile(r"nvme[0-9]+")
_RAM = re.compile(r"ram[0-9]+")
_PATH = re.compile(r"nvme[0-9]+c[0-9]+n[0-9]+")  # one path to a multipath disk; it cannot be opened


def read_disks(host: Host) -> Iterator[Record]:
    """Yield a `Disk` for each device that lsblk shows. Loop devices without a file and RAM disks are left out."""
    found = yield from devices(host, BLOCK, "Disk")
    names = frozenset(name for name, _ in found)
    for name, folder in found:
        if not _PATH.fullmatch(name) and not _RAM.fullmatch(name):
            yield from _disk(host, name, folder, names)


def _disk(host: Host, name: str, folder: str, names: Collection[str]) -> Iterator[Record]:
    reading = FactReader(host, Disk, name, folder)
    size = reading.take("size", "size", _bytes)
    # Just unplugged, or a loop device without a file.
    if "size" in reading.absent or (size == 0 and name.startswith("loop")):
        return
    above, _, _ = folder.rpartition("/")
    parent = above.rpartition("/")[2]
    if parent in names:
        reading.set(partition_of=parent)  # the disk has the other attributes
    else:
        try:
            controller = _controller(host, above, parent)
            place = host.resolve(f"{CONTROLLERS}/{controller}") if controller else None
            reading.set(controller=controller, address=pci_function(place or folder))
        except Unreadable as refusal:
            reading.refused("controller", refusal.path, refusal)
    reading.take("model", "device/model", word)
    reading.take("rotational", "queue/rotational", flag)
    yield from reading.records()


def _controller(host: Host, above: str, parent: str) -> str | None:
    """Return the NVMe controller of a disk; None for other disks, and for disks with several controllers.

    With native multipath (nvme_core.multipath, the default), the disk of a dual-port drive belongs to a subsystem. The
    subsystem's folder contains links to the controllers. The number in the disk's name is that of the subsystem.
    """
    if _CONTROLLER.fullmatch(parent):
        return parent
    if not parent.startswith("nvme-subsys"):
        return None
    controllers = [name for name in host.list(above) if _CONTROLLER.fullmatch(name)]
    return controllers[0] if len(controllers) == 1 else None


def _bytes(text: str) -> int:
    return count(text) * _SECTOR
