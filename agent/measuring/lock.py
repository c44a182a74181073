"""One lock per machine while probes run, since two runs at the same time would disturb each other's measurement."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...probes.calls.lock_file import open_lock_file

_NAME = "linkgauge.lock"


@contextmanager
def locked() -> Iterator[str | None]:
    """Hold the lock and yield None, or yield the reason why it cannot be taken."""
    try:
        descriptor = open_lock_file(_NAME)
    except OSError as refused:
        yield f"the lock {refused.filename} cannot be taken: {refused.strerror}"
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield f"another run measures this machine ({_holder(descriptor)})"
            return
        with suppress(OSError):  # a full disk: other processes then do not know who holds the lock
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield None
    finally:
        os.close(descriptor)  # releases the lock, as does any end of the process


def is_locked() -> str | None:
    """The process that measures this machine now, as text; None if there is none."""
    with locked() as why:
        return why


def _holder(descriptor: int) -> str:
    """The text in the lock file. Only a few plain characters are accepted."""
    with suppress(OSError):
        text = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip()
        return text if re.fullmatch(r"[\w ,.-]+", text) else "process unknown"
    return "process unknown"
