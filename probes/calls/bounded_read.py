"""Reads that neither block nor exceed a size, whatever is at the path: a pipe, a device or a huge file."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def bounded_read(path: str, most: int, flags: int = 0) -> bytes:
    """The content of a plain file. Raises OSError; ValueError, with a reason, for another or a larger file.

    `flags` are further flags of open(2): os.O_NOFOLLOW.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a plain file")
        content = read_up_to(descriptor, most)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise ValueError(f"larger than {most >> 20} MB" if most >> 20 else f"larger than {most} bytes")
    return content


def read_up_to(descriptor: int, most: int) -> bytes:
    """All that is in the open file; of a larger file somewhat more than `most` bytes."""
    parts, size = [], 0
    with suppress(BlockingIOError):  # a pipe into which nobody has written yet
        while size <= most and (part := os.read(descriptor, 1 << 16)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)
