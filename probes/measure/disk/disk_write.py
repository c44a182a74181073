"""The write rate of a folder, with an unnamed file that the kernel deletes when this process ends."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator

from ....models.facts.reason import Reason, reason_of
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, MIB, as_bytes
from ...host.host import Host
from ...storage.block_mounts import MountedFolder, disk_of, mounted_folder
from . import direct_io
from .data_blocks import BLOCK

_DEPTH = 8
_MOST = 4 * GIB
_SHARE = 0.05  # of the free space, at most
_LEAST = 64 * MIB
_HOW = "name another folder with --write-to"
_REASONS = {
    errno.EINVAL: "its file system has no direct writes",
    errno.EOPNOTSUPP: "its file system has no files without a name (O_TMPFILE)",
    errno.EISDIR: "its file system has no files without a name (O_TMPFILE)",
}


class _Unfit(Exception):
    """The folder is unsuitable for a test file. The message is the reason."""


def writes(host: Host, folder: str, seconds: float) -> Iterator[Record]:
    """Yield the write rate in bytes per second, including fdatasync."""
    mounted = mounted_folder(host, folder)
    name = folder if mounted is None else disk_of(host, mounted.device) if mounted.device else mounted.point
    try:
        most = _file_size(mounted, folder)
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except _Unfit as unfit:
        yield NotChecked(what="disk_write", subject=name, reason=Reason.NOT_MEASURED, detail=str(unfit), how=_HOW)
        return
    except OSError as error:
        known = _REASONS.get(error.errno or 0)
        reason, why = (Reason.NOT_SUPPORTED, known) if known else (reason_of(error.errno), str(error.strerror))
        yield NotChecked(what="disk_write", subject=name, reason=reason, path=folder, detail=why, how=_HOW)
        return
    try:
        transfer = direct_io.write(file, most, _DEPTH, seconds)
    finally:
        os.close(file)
    yield from _results(name, folder, transfer)


def _results(name: str, folder: str, transfer: direct_io.Transfer) -> Iterator[Record]:
    now = time.time()
    text = (
        f"{transfer.blocks} blocks of {BLOCK // MIB} MiB in {transfer.seconds:.2f} s with fdatasync, "
        f"{_DEPTH} at a time, "
        f"into a file without a name in {folder}, which is gone"
    )
    evidence = Evidence("pwrite", text)
    if transfer.failed:
        yield NotChecked(
            what="disk_write",
            subject=name,
            reason=reason_of(transfer.failed.errno),
            detail=f"{transfer.failed.strerror}, after {text}",
        )
    else:
        yield Observation(
            about=Flow("write", ("host", name)),
            quantity="rate",
            unit="bytes_per_second",
            value=transfer.rate,
            at=now,
            busy=True,
            evidence=evidence,
        )
    yield Observation(
        about=name, quantity="bytes_moved", unit="bytes", value=float(transfer.bytes), at=now, evidence=evidence
    )


def _file_size(mounted: MountedFolder | None, folder: str) -> int:
    """Return the maximum bytes of a test file in the folder. Raises _Unfit, OSError."""
    if mounted and mounted.device is None and not mounted.remote:
        raise _Unfit(f"{mounted.fstype} on {folder} is on no disk visible here")
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    most = min(_MOST, int(_SHARE * free)) // BLOCK * BLOCK
    if most < _LEAST:
        raise _Unfit(f"{as_bytes(free)} are free on {folder}: too little to write a test file")
    return most
