"""Mounted file systems from procfs (proc_pid_mounts(5)), and their free space."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec.structs import replace

from ...models.facts.machine import Mount
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import shown

# "self" is the reading process: with --root it is in our container, and in a recording it does not exist. Process 1
# has the mounts of the machine. proc/mounts is a link to self, but a plain file in some collections.
_TABLES = ("proc/1/mounts", "proc/self/mounts", "proc/mounts")
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "beegfs", "gpfs", "9p", "virtiofs", "wekafs"}
)  # and fuse.*
_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs"})  # read-only, always full
# Not storage.
_DESKTOP = frozenset({"fuse.portal", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.snapfuse", "fuse.squashfuse"})
_REMOUNTED = frozenset({"ext2", "ext3", "ext4", "btrfs", "f2fs", "jfs"})  # the kernel makes them read-only on errors
_DEADLINE = 5.0  # seconds for all mounts


def read_mounts(host: Host) -> Iterator[Record]:
    """Yield a `Mount` for each file system that a job may write to, local ones first, then their sizes."""
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
    mounts, invalid = _mounts(text)
    if invalid:
        yield NotChecked(what="Mount", subject="node", reason=Reason.UNREADABLE, path=table, detail=invalid)
    stores = sorted(filter(is_job_storage, mounts.values()), key=_is_network)
    yield from _with_super_block(host, table, stores)
    yield from _free(host, stores)


def _mounts(text: str) -> tuple[Mapping[str, Mount], str | None]:
    """Return mounts by mount point, and the error of an invalid line. The last mount at a point hides the others."""
    mounts: dict[str, Mount] = {}
    invalid = None
    for line in text.split("\n"):
        device, point, fstype, options, *_ = *map(unescaped, line.split(" ")), "", "", "", ""
        if _is_of_a_user(fstype, options):
            mounts = {key: one for key, one in mounts.items() if not f"{key}/".startswith(f"{point}/")}
        elif point.startswith("/") and fstype and "\0" not in point:
            read_only = "ro" in options.split(",")
            mounts[point] = Mount(key=point, device=device, fstype=fstype, read_only=read_only)
        else:
            invalid = f"{shown(line)} is not a mount"
    return mounts, invalid


def _is_of_a_user(fstype: str, options: str) -> bool:
    """Whether a user other than root mounted it, who decides what it answers (Documentation/filesystems/fuse.rst).

    It says nothing about the machine: it can be full, or never answer, and hides the mounts below it.
    """
    user = re.search(r"(?:^|,)user_id=([0-9]+)", options)
    return fstype.startswith("fuse") and bool(user and int(user[1]))


def _with_super_block(host: Host, table: str, stores: list[Mount]) -> Iterator[Mount]:
    """Yield the mounts. For a read-only one, whether an operator or the kernel made it read-only.

    The table of mounts shows "ro" in both cases. proc_pid_mountinfo(5) shows the flags of the mount and those of the
    super block: after an error the kernel makes the super block read-only and leaves the mount writable.
    """
    doubtful = [mount for mount in stores if mount.read_only and mount.fstype in _REMOUNTED]
    text = None
    with suppress(Unreadable):
        text = host.read(table.removesuffix("mounts") + "mountinfo") if doubtful else None
    stopped: dict[str, bool] = {}
    for line in (text or "").split("\n"):
        mount, _, super_block = line.partition(" - ")
        fields, options = mount.split(" "), super_block.split(" ")[2:]
        if len(fields) > 5 and options:
            writable = "rw" in fields[5].split(",")
            stopped[unescaped(fields[4])] = writable and "ro" in options[-1].split(",")
    for one in stores:
        yield replace(one, stopped=stopped.get(one.key)) if one in doubtful else one


def unescaped(text: str) -> str:
    r"""Decode spaces, tabs, line ends, # and \ from three octal digits (mangle_path of fs/seq_file.c)."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda digits: chr(int(digits[1], 8)), text)


def is_job_storage(mount: Mount) -> bool:
    """Whether a job may use the file system: on a device, over the network, or NCCL's shared memory."""
    fstype, device = mount.fstype or "", mount.device or ""
    if fstype in _IMAGES or fstype in _DESKTOP:
        return False
    return (
        device.startswith("/dev/")
        or fstype == "zfs"
        or _is_network(mount)
        or (fstype == "tmpfs" and mount.key == "/dev/shm")
        or (fstype == "overlay" and mount.key == "/")
    )


def _is_network(mount: Mount) -> bool:
    return is_network_type(mount.fstype or "")


def is_network_type(fstype: str) -> bool:
    """Whether a server provides file systems of this type. The server may be unreachable."""
    return fstype in _NETWORK or fstype.startswith("fuse.")


def _free(host: Host, stores: list[Mount]) -> Iterator[Record]:
    """Yield sizes from a child process, and a NotChecked for each mount point without a result."""
    pending = {mount.key: mount for mount in _visible_here(host, stores)}
    for mount in stores:
        if mount.key not in pending:
            why = "mounted for the machine's first process, not for this one"
            yield NotChecked(
                what="Mount.free",
                subject=mount.key,
                reason=Reason.OTHER_CONTEXT,
                detail=why,
                how="run outside of the container",
            )
    lost = NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail="no answer")
    for record in host.call("statvfs", *pending, deadline=_DEADLINE) if pending else ():
        if isinstance(record, NotChecked) and record.subject not in pending:
            lost = record
        elif isinstance(record, NotChecked | Mount):
            pending.pop(record.subject if isinstance(record, NotChecked) else record.key, None)
            yield record
    for point, mount in pending.items():
        how = lost.how or (f"see whether {mount.device} answers" if _is_network(mount) else None)
        yield NotChecked(
            what="Mount.free", subject=point, reason=lost.reason, detail=lost.detail, path=lost.path, how=how
        )


def _visible_here(host: Host, stores: list[Mount]) -> list[Mount]:
    """Return the mounts that this process sees too. Else statvfs would measure another mount of its own namespace."""
    try:
        text = host.read("proc/self/mounts")
    except Unreadable:
        text = None
    mine = _mounts(text)[0] if text else None
    return [mount for mount in stores if mine is None or _identity(mine.get(mount.key)) == _identity(mount)]


def _identity(mount: Mount | None) -> tuple[str | None, str | None] | None:
    """Return device and type. Options are ignored, because ProtectSystem= changes them (systemd.exec(5))."""
    return (mount.device, mount.fstype) if mount else None
