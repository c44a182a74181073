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
        yield _taken(descriptor)
    finally:
        os.close(descriptor)  # releases the lock, as does any end of the process


def is_locked() -> str | None:
    """The process that measures this machine now, as text; None if there is none. Raises OSError."""
    descriptor = open_lock_file(_NAME)
    try:
        return _taken(descriptor)
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> str | None:
    """Take the lock and return None, or return which process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return f"another run measures this machine ({_holder(descriptor)})"
    with suppress(OSError):  # a full disk: other processes then do not know who holds the lock
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
    return None


def _holder(descriptor: int) -> str:
    """The text in the lock file. Only a few plain characters are accepted."""
    with suppress(OSError):
        text = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip()
        return text if re.fullmatch(r"[\w ,.-]+", text) else "process unknown"
    return "process unknown"
