"""Each linkgauge process that has NVIDIA's driver open holds a shared lock.

`linkgauge release` waits until no process holds it.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress

from .hold import RELEASE, active_request
from .lock_file import open_lock_file

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
    descriptor = open_lock_file(_NAME)
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
    """Whether a linkgauge process has the driver open. Raises OSError if the lock cannot be opened."""
    descriptor = open_lock_file(_NAME)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
