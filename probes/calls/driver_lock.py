"""Each linkgauge process that has NVIDIA's driver open holds a shared lock.

`linkgauge release` waits until no process holds it.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from .hold import RELEASE, active_request, folder

_NAME = "linkgauge.driver"
_TRIES, _PAUSE = 20, 0.01  # attempts; seconds between two
_held: list[int] = []  # the descriptor of the lock, if this process holds it


def keep() -> str | None:
    """Hold the lock until this process ends. Returns a text if there is a release request: who made it.

    This process takes the lock first and then looks for a request. `linkgauge release` makes the request first and
    then looks at the lock. So one of the two always sees the other. If the lock cannot be taken (no permission), no
    process can wait for this one.
    """
    open_before = bool(_held)
    if not open_before:
        with suppress(OSError):
            _held.append(_shared())
    who = active_request(RELEASE)
    if who and not open_before:
        _let_go()
    return who


def _shared() -> int:
    """Take the shared lock. Raises OSError. is_open() holds it exclusively for a moment, therefore several attempts."""
    descriptor = _opened()
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            break
        except OSError:
            if not left:
                os.close(descriptor)
                raise
            time.sleep(_PAUSE)
    return descriptor


def _let_go() -> None:
    while _held:
        os.close(_held.pop())


def is_open() -> bool:
    """Whether a linkgauge process has the driver open."""
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
    """Open the lock file, or create it if there is none. Only O_EXCL may create a file here (fs.protected_regular)."""
    path = os.path.join(folder(), _NAME)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        os.fchmod(descriptor, 0o444)
        return descriptor
    # The path can be a pipe of another user, which must not block.
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
