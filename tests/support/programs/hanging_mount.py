"""A file system that never answers. A caller hangs in the kernel and cannot be killed.

The other end of a FUSE mount: it answers the first message and then reads all messages without an answer
(include/uapi/linux/fuse.h; Documentation/filesystems/fuse.rst, "Interrupting filesystem operations").
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

_MESSAGE = 1 << 17  # bytes; at least FUSE_MIN_READ_BUFFER
_FLAGS = 6  # MS_NOSUID | MS_NODEV
_DETACH = 2  # MNT_DETACH


@contextmanager
def hanging_mount(place: Path) -> Iterator[None]:
    """Mount it at `place`. At the end, all hanging callers return."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as refused:
        pytest.skip(f"/dev/fuse: {refused.strerror}")
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"hanging", os.fsencode(place), b"fuse.hanging", _FLAGS, options):
        os.close(device)
        pytest.skip(f"mount: {os.strerror(ctypes.get_errno())}")
    ended, end = os.pipe()
    taking = Thread(target=_take, args=(device, ended))
    taking.start()
    try:
        yield
    finally:
        libc.umount2(os.fsencode(place), _DETACH)
        os.close(end)
        taking.join()
        os.close(ended)
        os.close(device)  # the kernel then aborts the pending requests


def _take(device: int, ended: int) -> None:
    _, _, unique = struct.unpack_from("<IIQ", os.read(device, _MESSAGE))
    body = struct.pack("<IIIIHHII36x", 7, 31, 0, 0, 12, 9, 1 << 16, 1)
    os.write(device, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
    with suppress(OSError):  # ENODEV: already unmounted
        while ended not in select.select([device, ended], [], [])[0]:
            os.read(device, _MESSAGE)
