"""How large file systems are and what is free on them. It runs in a child: statvfs hangs where a server is away."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from ...models.facts.machine import Mount
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked, Record


def free_space(*mountpoints: str) -> Iterator[Record]:
    """Size and free bytes of each mount point, one by one: what hangs loses itself and what comes after it."""
    for point in mountpoints:
        try:
            said = os.statvfs(point)
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
        if said.f_blocks:
            yield Mount(key=point, size=said.f_blocks * said.f_frsize, free=said.f_bavail * said.f_frsize)
        else:
            yield NotChecked(
                what="Mount.free",
                subject=point,
                reason=Reason.NOT_SUPPORTED,
                detail="the file system does not say how large it is",
            )
