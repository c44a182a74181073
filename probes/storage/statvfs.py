"""The call `statvfs`: size and free space of file systems, in a child process.

statvfs hangs if a server is unreachable.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from ...models.facts.machine import Mount
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked, Record


def free_space(*mountpoints: str) -> Iterator[Record]:
    """Yield size and free bytes of each mount point in turn. If one hangs, it and all later ones have no result."""
    for point in mountpoints:
        try:
            stats = os.statvfs(point)
        except OSError as error:
            how = "run as root" if error.errno in (errno.EACCES, errno.EPERM) else None
            yield NotChecked(
                what="Mount.free",
                subject=point,
                reason=reason_of(error.errno),
                path="statvfs",
                detail=str(error.strerror),
                how=how,
            )
            continue
        if stats.f_blocks:
            yield Mount(key=point, size=stats.f_blocks * stats.f_frsize, free=stats.f_bavail * stats.f_frsize)
        else:
            yield NotChecked(
                what="Mount.free",
                subject=point,
                reason=Reason.NOT_SUPPORTED,
                detail="the file system does not say how large it is",
            )
