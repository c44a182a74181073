"""The PCIe links below a disk while it is read: of all members of an array, and of all paths of a multipath disk."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from ....models.facts.records import Record
from ...host.host import Host, Unreadable
from ...pcie.busy_speed import BUSY
from ...pcie.speed_samples import LinkSamples
from ...storage.disk_traffic import disk_bytes

_BLOCK, _VIRTUAL = "sys/class/block", "sys/devices/virtual/"
_DEEPEST = 8  # an array of volumes on encrypted partitions has five levels
# A disk with native multipath belongs to a subsystem: nvme3n1. Each path is a hidden disk below its controller:
# nvme3c0n1 (drivers/nvme/host/multipath.c, nvme_mpath_set_disk_name). The kernel counts bytes at the path.
_HEAD = re.compile(r"nvme(?P<subsystem>[0-9]+)n(?P<namespace>[0-9]+)")


class DiskLinks:
    """Samples of the links above the hardware of a disk or array."""

    def __init__(self, host: Host, name: str) -> None:
        self._host, self._start = host, time.monotonic()
        folders = dict.fromkeys(hardware(host, name))
        self._samples = {folder: LinkSamples(host, folder) for folder in folders}
        self._before = {folder: _bytes(host, folder) for folder in folders}

    def sample(self) -> None:
        """Take one sample of each link."""
        for samples in self._samples.values():
            samples.sample()

    def observations(self, text: str) -> Iterator[Record]:
        """Yield the speeds; `text` describes the load.

        A mirror may read one member only, and one path may be standby. Links that carried no bytes are at rest, so
        their speed is left out.
        """
        seconds = time.monotonic() - self._start
        seen: set[str] = set()
        for folder, samples in self._samples.items():
            before, now = self._before[folder], _bytes(self._host, folder)
            if len(self._samples) > 1 and (before is None or now is None or now - before < BUSY * seconds):
                continue
            for record in samples.observations(text):
                about = str(getattr(record, "about", ""))
                if about not in seen:
                    seen.add(about)
                    yield record


def hardware(host: Host, name: str, depth: int = _DEEPEST) -> Iterator[str]:
    """Yield the sysfs folder of each disk or path on a bus that carries the bytes of a block device."""
    folder = _folder(host, f"{_BLOCK}/{name}")
    if not folder or not depth:
        return
    if not folder.startswith(_VIRTUAL):
        yield folder
        return
    for part in _names(host, f"{folder}/slaves"):
        yield from hardware(host, part, depth - 1)
    yield from _paths(host, folder, name)


def _paths(host: Host, folder: str, name: str) -> Iterator[str]:
    """Yield the folder of each path of a multipath disk. The subsystem's folder has a link to each controller."""
    if not (head := _HEAD.fullmatch(name)):
        return
    path = re.compile(rf"nvme{head['subsystem']}c[0-9]+n{head['namespace']}")
    subsystem = folder.rpartition("/")[0]
    for controller in _names(host, subsystem):
        place = _folder(host, f"{subsystem}/{controller}") if re.fullmatch("nvme[0-9]+", controller) else ""
        yield from (f"{place}/{one}" for one in _names(host, place) if place and path.fullmatch(one))


def _folder(host: Host, path: str) -> str:
    try:
        return host.resolve(path) or ""
    except Unreadable:
        return ""


def _names(host: Host, folder: str) -> list[str]:
    try:
        return host.list(folder)
    except Unreadable:
        return []


def _bytes(host: Host, folder: str) -> int | None:
    try:
        return sum(disk_bytes(host, folder))
    except (Unreadable, ValueError, IndexError):
        return None
