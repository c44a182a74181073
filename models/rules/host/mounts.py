"""Free space on file systems that jobs write to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.machine import Mount
from ...facts.records import Evidence
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.log_history import events
from ..core.rule import Rule
from ..core.wording import cited

# The alert of node_exporter warns below this share (docs/node-mixin, fsSpaceAvailableWarningThreshold). As there, the
# free space is what unprivileged users may fill, and read-only mounts are left out.
_LEAST = 0.05
_IMAGES = frozenset({"squashfs", "iso9660", "udf", "erofs", "cramfs"})  # read-only, and always full
_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})  # job_limits.py checks /dev/shm
_IMAGE_DEVICES = re.compile(r"/dev/(loop|sr)\d+")
# Mounts of the firmware, the boot loader and the package manager, also below the mounted host root of a container.
_SYSTEM = re.compile(r"/(boot|efi|recovery|snap|snapd)(/|$)|^/usr(/|$)")


def writable(snapshot: Snapshot, mount: Mount) -> bool:
    """Select mounts that jobs may write to."""
    kind, device = mount.fstype or "", mount.device or ""
    own = _SYSTEM.search(mount.key) or kind in _IMAGES | _MEMORY or _IMAGE_DEVICES.fullmatch(device)
    return not (mount.read_only or own or device in _MEMORY)


def full(snapshot: Snapshot, mount: Mount) -> Iterator[Finding]:
    """A file system is nearly full. One finding for all mount points of the same file system."""
    size, free = mount.size or 0, mount.free or 0
    if free >= _LEAST * size or mount.key != min(_same(snapshot, mount), key=lambda key: (len(key), key)):
        return
    fact = f"has {as_bytes(free)} of {as_bytes(size)} free ({free / size:.1%})"
    yield Finding(
        code="storage-full",
        severity="warning",
        subject=mount.key,
        subject_name=mount.device,
        fact=fact,
        message=f"{mount.key} {fact}: checkpoints, caches and logs of jobs may find no room",
        expected=_LEAST * size,
        observed=free,
        unit="bytes",
        expected_source="prometheus/node_exporter, docs/node-mixin: NodeFilesystemAlmostOutOfSpace warns below 5 %",
        cause="checkpoints, caches, logs or container images that nobody removed",
        evidence=cited(mount, "free") or (Evidence(f"statvfs {mount.key}", f"{free} of {size} bytes free"),),
    )


def _same(snapshot: Snapshot, mount: Mount) -> Iterator[str]:
    """The mount points of the same file system. A container's overlay reports the size of the disk below it."""
    for key, other in snapshot.of(Mount).items():
        alike = (other.size, other.free) == (mount.size, mount.free)
        layered = "overlay" in (mount.fstype, other.fstype)
        if writable(snapshot, other) and alike and (layered or other.device == mount.device):
            yield key


def stopped(snapshot: Snapshot, mount: Mount) -> Iterator[Finding]:
    """The kernel made a file system read-only after an error. disk_events.py reports it if the log still has the line.

    One finding for all mount points of the same file system.
    """
    same = [other.key for other in snapshot.of(Mount).values() if other.device == mount.device and other.stopped]
    if not mount.stopped or mount.key != min(same) or _is_logged(snapshot, mount.device or ""):
        return
    yield Finding(
        code="storage-degraded",
        severity="critical",
        subject=mount.key,
        subject_name=mount.device,
        message=f"{mount.key} is mounted writable, and the kernel made its file system ({mount.device}) read-only: "
        "jobs cannot write there",
        expected="writable",
        observed="read-only",
        case="file system",
        cause="an error of the file system or of its disk; the kernel log had the reason",
        evidence=(Evidence("proc/1/mountinfo", f"{mount.device} {mount.fstype}: mount rw, super block ro"),),
    )


def _is_logged(snapshot: Snapshot, device: str) -> bool:
    mapped = device.startswith("/dev/mapper/")
    names = [event.subject or "" for event in events(snapshot, "file system stopped")]
    return any(device == f"/dev/{name}" or (mapped and name.startswith("dm-")) for name in names)


RULES = (
    Rule("storage-full", Mount, ("size", "free"), full, writable),
    Rule("storage-degraded", Mount, ("stopped",), stopped),
)
