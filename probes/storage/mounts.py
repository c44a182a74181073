"""Mounted file systems from procfs (proc_pid_mounts(5)), and what is free on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ...models.facts.machine import Mount
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import shown

# "self" is the process that reads: under --root that is one of our container, in a recording it is nobody. The first
# process has the mounts of the machine. proc/mounts is a link to self, and a file of its own in some collections.
_TABLES = ("proc/1/mounts", "proc/self/mounts", "proc/mounts")
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "beegfs", "gpfs", "9p", "virtiofs", "wekafs"}
)  # and fuse.*
_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs"})  # read-only, always full
_DESKTOP = frozenset({"fuse.portal", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.snapfuse", "fuse.squashfuse"})  # no storage
_DEADLINE = 5.0  # seconds, for all of them and the start of a process


def read_mounts(host: Host) -> Iterator[Record]:
    """A `Mount` for each file system that a job may write to, local ones first; then their sizes, as they answer."""
    text, refused = None, None
    for table in _TABLES:
        try:
            if text := host.read(table):
                break
        except Unreadable as refusal:
            refused = refused or refusal.missed("Mount", "node", table)
    if not text:
        yield from [refused] if refused else []
        return
    mounts, rubbish = _mounts(text)
    if rubbish:
        yield NotChecked(what="Mount", subject="node", reason=Reason.UNREADABLE, path=table, detail=rubbish)
    stores = sorted(filter(is_store, mounts.values()), key=_far)
    yield from stores
    yield from _free(host, stores)


def _mounts(text: str) -> tuple[Mapping[str, Mount], str | None]:
    """Mounts by mount point, and what is wrong with a line. The last one mounted there hides the others."""
    mounts: dict[str, Mount] = {}
    rubbish = None
    for line in text.split("\n"):
        device, point, fstype, options, *_ = *map(unescaped, line.split(" ")), "", "", "", ""
        if point.startswith("/") and fstype and "\0" not in point:
            read_only = "ro" in options.split(",")
            mounts[point] = Mount(key=point, device=device, fstype=fstype, read_only=read_only)
        else:
            rubbish = f"{shown(line)} is not a mount"
    return mounts, rubbish


def unescaped(text: str) -> str:
    r"""Spaces, tabs, line ends, # and \ stand there as three octal digits (mangle_path of fs/seq_file.c)."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda digits: chr(int(digits[1], 8)), text)


def is_store(mount: Mount) -> bool:
    """Whether it holds files that matter: on a device, over the network, or the memory that NCCL shares."""
    fstype, device = mount.fstype or "", mount.device or ""
    if fstype in _IMAGES or fstype in _DESKTOP:
        return False
    return (
        device.startswith("/dev/")
        or fstype == "zfs"
        or _far(mount)
        or (fstype == "tmpfs" and mount.key == "/dev/shm")
        or (fstype == "overlay" and mount.key == "/")
    )


def _far(mount: Mount) -> bool:
    return is_far(mount.fstype or "")


def is_far(fstype: str) -> bool:
    """Whether a server answers for a file system of that type, which may be away."""
    return fstype in _NETWORK or fstype.startswith("fuse.")


def _free(host: Host, stores: list[Mount]) -> Iterator[Record]:
    """Sizes from a child; a NotChecked for each mount point that was not answered for."""
    left = {mount.key: mount for mount in _ours(host, stores)}
    for mount in stores:
        if mount.key not in left:
            why = "mounted for the machine's first process, not for this one"
            yield NotChecked(
                what="Mount.free",
                subject=mount.key,
                reason=Reason.OTHER_CONTEXT,
                detail=why,
                how="run outside of the container",
            )
    lost = NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail="no answer")
    for said in host.call("statvfs", *left, deadline=_DEADLINE) if left else ():
        if isinstance(said, NotChecked) and said.subject not in left:
            lost = said
        elif isinstance(said, NotChecked | Mount):
            left.pop(said.subject if isinstance(said, NotChecked) else said.key, None)
            yield said
    for point, mount in left.items():
        how = lost.how or (f"see whether {mount.device} answers" if _far(mount) else None)
        yield NotChecked(
            what="Mount.free", subject=point, reason=lost.reason, detail=lost.detail, path=lost.path, how=how
        )


def _ours(host: Host, stores: list[Mount]) -> list[Mount]:
    """Those that this process sees: statvfs would answer for whatever is there in its own mount namespace."""
    try:
        text = host.read("proc/self/mounts")
    except Unreadable:
        text = None
    mine = _mounts(text)[0] if text else None
    return [mount for mount in stores if mine is None or _place(mine.get(mount.key)) == _place(mount)]


def _place(mount: Mount | None) -> tuple[str | None, str | None] | None:
    """What is mounted there. A service may see read-only what others write to (systemd.exec(5), ProtectSystem=)."""
    return (mount.device, mount.fstype) if mount else None
