"""Mount points of a disk, and the disk of a folder, from the mounts of this process (proc_pid_mountinfo(5))."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from ..host.host import Host, Unreadable
from .mounts import is_network_type, unescaped

_BLOCK = "sys/class/block"
_LINE = re.compile(r"\d+ \d+ (?P<number>\d+:\d+) \S+ (?P<point>\S+) .* - (?P<fstype>\S+) (?P<source>\S+) \S*")


class MountedFolder(Struct, frozen=True):
    """A mount point, or a folder below it, and its block device if there is one."""

    point: str
    fstype: str
    device: str | None  # "nvme0n1p1", "dm-0"
    remote: bool  # a server provides it


def mount_points(host: Host) -> list[MountedFolder]:
    """Return all mount points. A file system with several mounts appears several times."""
    numbers = {_read(host, f"{_BLOCK}/{name}/dev"): name for name in _names(host, _BLOCK)}
    found = []
    for line in _read(host, "proc/self/mountinfo").splitlines():
        if match := _LINE.fullmatch(line):
            fstype, source = match["fstype"], unescaped(match["source"])
            # File systems on several disks (btrfs) have their own device number and name one of the disks.
            named = host.resolve(source[1:]) if source.startswith("/dev/") else None
            device = numbers.get(match["number"]) or (named or "").rpartition("/")[2]
            is_block = device in numbers.values()
            found.append(
                MountedFolder(unescaped(match["point"]), fstype, device if is_block else None, is_network_type(fstype))
            )
    return found


def mounted_folder(host: Host, folder: str) -> MountedFolder | None:
    """Return the folder with its file system, which has the longest matching mount point; None if it is no folder."""
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        return None
    candidates = [
        one for one in mount_points(host) if path == one.point or path.startswith(one.point.rstrip("/") + "/")
    ]
    # max() returns the first of equal mount points; the last one hides the others.
    last = max(candidates, key=lambda one: len(one.point), default=None)
    visible = [one for one in candidates if last and one.point == last.point]
    return MountedFolder(path, visible[-1].fstype, visible[-1].device, visible[-1].remote) if visible else None


def mount_points_of(host: Host, disk: str) -> list[MountedFolder]:
    """Return the mount points of a disk or array. Members of an array have none."""
    return [
        one
        for one in mount_points(host)
        if one.device and disk_of(host, one.device) == disk and os.path.isdir(one.point)
    ]


def disk_of(host: Host, device: str) -> str:
    """Return the disk or array below a partition or mapped device. A device on several disks counts as a disk."""
    for _ in range(8):  # a logical volume on an encrypted partition takes three steps
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
