"""Where the files of a disk are seen, and on which disk a folder lies: mount points of this process.

proc_pid_mountinfo(5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..host.host import Host, Unreadable
from .mounts import is_far, unescaped

_BLOCK = "sys/class/block"
_LINE = re.compile(r"\d+ \d+ (?P<number>\d+:\d+) \S+ (?P<point>\S+) .* - (?P<fstype>\S+) (?P<source>\S+) \S*")


@dataclass(frozen=True, slots=True)
class Place:
    """A mount point, or a folder below it; the block device, where it lies on one."""

    point: str
    fstype: str
    device: str | None  # "nvme0n1p1", "dm-0"
    far: bool  # a server answers for it


def places(host: Host) -> list[Place]:
    """All mount points. A file system that is mounted several times is there several times."""
    numbers = {_read(host, f"{_BLOCK}/{name}/dev"): name for name in _names(host, _BLOCK)}
    found = []
    for line in _read(host, "proc/self/mountinfo").splitlines():
        if match := _LINE.fullmatch(line):
            fstype, source = match["fstype"], unescaped(match["source"])
            # File systems of several disks (btrfs) have numbers of their own, and tell the name of one of them.
            named = host.resolve(source[1:]) if source.startswith("/dev/") else None
            device = numbers.get(match["number"]) or (named or "").rpartition("/")[2]
            is_block = device in numbers.values()
            found.append(Place(unescaped(match["point"]), fstype, device if is_block else None, is_far(fstype)))
    return found


def place_of(host: Host, folder: str) -> Place | None:
    """The folder, on the file system that it lies on: the longest mount point above it; None where it is no folder."""
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        return None
    above = [one for one in places(host) if path == one.point or path.startswith(one.point.rstrip("/") + "/")]
    last = max(above, key=lambda one: len(one.point), default=None)  # of equals the first; the last hides the others
    hiding = [one for one in above if last and one.point == last.point]
    return Place(path, hiding[-1].fstype, hiding[-1].device, hiding[-1].far) if hiding else None


def places_of(host: Host, disk: str) -> list[Place]:
    """Where files of the disk are seen, the largest mount first. On an array they are the array's, not its members'."""
    return [
        one for one in places(host) if one.device and disk_of(host, one.device) == disk and os.path.isdir(one.point)
    ]


def disk_of(host: Host, device: str) -> str:
    """The disk or array that a block device lies on: of a partition its disk, of a mapped device what is below it.

    What lies on several is its own disk.
    """
    for _ in range(8):  # a logical volume on an encrypted partition: three
        below = _names(host, f"{_BLOCK}/{device}/slaves")
        if device.startswith("dm-") and len(below) == 1:
            device = below[0]
        elif _read(host, f"{_BLOCK}/{device}/partition"):
            device = (host.resolve(f"{_BLOCK}/{device}") or "").rpartition("/")[0].rpartition("/")[2]
        else:
            break
    return device


def _names(host: Host, path: str) -> list[str]:
    try:
        return host.list(path)
    except Unreadable:
        return []


def _read(host: Host, path: str) -> str:
    try:
        return host.read(path) or ""
    except Unreadable:
        return ""
