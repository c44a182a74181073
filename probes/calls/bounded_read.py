"""Reads that never block and never exceed a size, even if the path is a pipe, a device or a huge file."""

from __future__ import annotations

import os
import stat

_MOST_OVERRUNS = 100  # a kernel that logs faster than this process reads


def bounded_read(path: str, most: int, flags: int = 0) -> bytes:
    """The content of a plain file of at most `most` bytes.

    Raises OSError, and ValueError with a reason if the file is not plain or is larger. `flags` are additional flags
    of open(2), for example os.O_NOFOLLOW.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("not a plain file")
        content = read_up_to(descriptor, most) if status.st_size <= most else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > most:
        raise ValueError(f"larger than {most >> 20} MB" if most >> 20 else f"larger than {most} bytes")
    return content


def read_up_to(descriptor: int, most: int) -> bytes:
    """The whole content of the open file. For a file above `most` bytes: its start, up to 64 KiB more than `most`.

    /dev/kmsg gives EPIPE if the kernel has overwritten the next record, and the read after it gives the oldest record
    that is left (ABI/testing/dev-kmsg). The content then starts there, so that it has no gap.
    """
    parts: list[bytes] = []
    overruns = 0
    while sum(map(len, parts)) <= most:
        try:
            part = os.read(descriptor, 1 << 16)
        except BlockingIOError:  # an empty pipe
            break
        except BrokenPipeError:
            overruns += 1
            if overruns > _MOST_OVERRUNS:
                raise
            parts = []
            continue
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
