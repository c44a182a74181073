"""Whoever of us has NVIDIA's driver open holds a shared lock: `linkgauge release` waits until nobody does."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import cache

from .hold import folder

_NAME = "linkgauge.driver"


@cache
def keep() -> None:
    """Hold the lock, once, until this process ends. Where it cannot be had, nobody can wait for us."""
    with suppress(OSError):
        fcntl.flock(_opened(), fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_open() -> bool:
    """Whether a process of ours has the driver open."""
    try:
        descriptor = _opened()
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened() -> int:
    """As every lock of everybody's: created only where nothing is (fs.protected_regular)."""
    path = os.path.join(folder(), _NAME)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        os.fchmod(descriptor, 0o444)
        return descriptor
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
