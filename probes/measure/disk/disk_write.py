"""How fast a folder takes what is written to it: one file without a name, which is gone when this process is."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator

from ....models.facts.reason import Reason, reason_of
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, MIB, as_bytes
from ...host.host import Host
from ...storage.block_mounts import Place, disk_of, place_of
from . import direct_io
from .data_blocks import BLOCK

_DEPTH = 8
_MOST = 4 * GIB
_SHARE = 0.05  # of what is free, no more is taken
_LEAST = 64 * MIB
_HOW = "name another folder with --write-to"
_WHYS = {
    errno.EINVAL: "its file system has no direct writes",
    errno.EOPNOTSUPP: "its file system has no files without a name (O_TMPFILE)",
    errno.EISDIR: "its file system has no files without a name (O_TMPFILE)",
}


class _Unfit(Exception):
    """The folder cannot take a test file; the text says why, in words."""


def writes(host: Host, folder: str, seconds: float) -> Iterator[Record]:
    """Bytes per second that are written and reached the disk (fdatasync)."""
    place = place_of(host, folder)
    name = folder if place is None else disk_of(host, place.device) if place.device else place.point
    try:
        most = _room(place, folder)
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except _Unfit as unfit:
        yield NotChecked(what="disk_write", subject=name, reason=Reason.NOT_MEASURED, detail=str(unfit), how=_HOW)
        return
    except OSError as error:
        known = _WHYS.get(error.errno or 0)
        reason, why = (Reason.NOT_SUPPORTED, known) if known else (reason_of(error.errno), str(error.strerror))
        yield NotChecked(what="disk_write", subject=name, reason=reason, path=folder, detail=why, how=_HOW)
        return
    try:
        moved = direct_io.write(file, most, _DEPTH, seconds)
    finally:
        os.close(file)
    now = time.time()
    text = (
        f"{moved.blocks} blocks of {BLOCK // MIB} MiB in {moved.seconds:.2f} s with fdatasync, {_DEPTH} at a time, "
        f"into a file without a name in {folder}, which is gone"
    )
    evidence = Evidence("pwrite", text)
    if moved.failed:
        yield NotChecked(
            what="disk_write",
            subject=name,
            reason=reason_of(moved.failed.errno),
            detail=f"{moved.failed.strerror}, after {text}",
        )
    else:
        yield Observation(
            about=Flow("write", ("host", name)),
            quantity="rate",
            unit="bytes_per_second",
            value=moved.rate,
            at=now,
            busy=True,
            evidence=evidence,
        )
    yield Observation(
        about=name, quantity="bytes_moved", unit="bytes", value=float(moved.bytes), at=now, evidence=evidence
    )


def _room(place: Place | None, folder: str) -> int:
    """How many bytes a test file in the folder may have. Raises _Unfit, and OSError."""
    if place and place.device is None and not place.remote:
        raise _Unfit(f"{place.fstype} on {folder} lies on no disk that is seen here")
    told = os.statvfs(folder)
    free = told.f_bavail * told.f_frsize
    most = min(_MOST, int(_SHARE * free)) // BLOCK * BLOCK
    if most < _LEAST:
        raise _Unfit(f"{as_bytes(free)} are free on {folder}: too little to write a test file")
    return most
