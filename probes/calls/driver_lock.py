"""Whoever of us has NVIDIA's driver open holds a shared lock: `linkgauge release` waits until nobody does."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from .hold import RELEASE, asked, folder

_NAME = "linkgauge.driver"
_TRIES, _GLANCE = 20, 0.01  # seconds
_held: list[int] = []  # the lock, where this process has it


def keep() -> str | None:
    """Hold the lock until this process ends, whatever ends it; or who wants the driver closed, in words.

    First the lock, then the question: whoever wants it closed says so before he looks at the lock. Where it cannot be
    had, nobody can wait for us.
    """
    open_before = bool(_held)
    if not open_before:
        with suppress(OSError):
            _held.append(_shared())
    who = asked(RELEASE)
    if who and not open_before:
        _let_go()
    return who


def _shared() -> int:
    """Raises OSError. Who only looks at the lock has it for a moment, in which it cannot be shared."""
    descriptor = _opened()
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except OSError:
            if not left:
                os.close(descriptor)
                raise
            time.sleep(_GLANCE)
    return descriptor


def _let_go() -> None:
    while _held:
        os.close(_held.pop())


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
    # A pipe that somebody has put there must not block.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
