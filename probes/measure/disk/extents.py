"""The parts of a file that contain data on its disk, from FIEMAP (kernel documentation, filesystems/fiemap).

Unwritten, inline, compressed and encrypted extents are left out: reading them moves no bytes of the disk, or a
different number of bytes.
"""

from __future__ import annotations

import fcntl
import struct
from collections.abc import Iterator

from msgspec import Struct

_FIEMAP = 0xC020660B  # FS_IOC_FIEMAP, include/uapi/linux/fs.h; its structures: include/uapi/linux/fiemap.h
_HEAD = struct.Struct("=QQIIII")  # start, length, flags, mapped extents, capacity in extents, reserved
_EXTENT = struct.Struct("=QQQ2QI3I")  # logical, physical, length, reserved, flags, reserved
_ROOM = 256  # extents in one answer
_LAST = 0x1
# Unknown, delayed, encoded, encrypted, not aligned, inline, in a tail, unwritten.
_NO_DATA = 0x2 | 0x4 | 0x8 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800


class Extent(Struct, frozen=True):
    """A contiguous part of a file, in bytes."""

    offset: int
    length: int


def extents(file: int) -> Iterator[Extent]:
    """Yield the extents of an open file that contain plain data; adjacent extents are merged.

    Raises OSError if the file system has no FIEMAP.
    """
    begin = end = 0
    for one in _mapped(file):
        if one.offset != end:
            if end > begin:
                yield Extent(begin, end - begin)
            begin = one.offset
        end = one.offset + one.length
    if end > begin:
        yield Extent(begin, end - begin)


def _mapped(file: int) -> Iterator[Extent]:
    start = 0
    while True:
        answer = bytearray(_HEAD.size + _ROOM * _EXTENT.size)
        _HEAD.pack_into(answer, 0, start, (1 << 64) - 1 - start, 0, 0, _ROOM, 0)
        fcntl.ioctl(file, _FIEMAP, answer, True)
        count = _HEAD.unpack_from(answer)[3]
        flags = _LAST
        for number in range(count):
            logical, _, length, _, _, flags, *_ = _EXTENT.unpack_from(answer, _HEAD.size + number * _EXTENT.size)
            start = logical + length
            if not flags & _NO_DATA:
                yield Extent(logical, length)
        if flags & _LAST:
            return
