"""One lock per machine while probes run, since two runs at the same time would disturb each other's measurement."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...probes.calls.hold import folder

_NAME = "linkgauge.lock"


@contextmanager
def locked() -> Iterator[str | None]:
    """Hold the lock and yield None, or yield the reason why it cannot be taken."""
    path = os.path.join(folder(), _NAME)
    try:
        descriptor = _open_lock_file(path)
    except OSError as refused:
        yield f"the lock {path} cannot be taken: {refused.strerror}"
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield f"another run measures this machine ({_holder(descriptor)})"
            return
        # Write who holds the lock, for other processes. The file of another user may be read-only.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield None
    finally:
        os.close(descriptor)  # releases the lock, as does any end of the process


def is_locked() -> str | None:
    """The process that measures this machine now, as text; None if there is none."""
    with locked() as why:
        return why


def _open_lock_file(path: str) -> int:
    """Open or create a file that every user may lock.

    O_EXCL comes first: with O_CREAT alone the kernel refuses another user's file in a world-writable folder
    (fs.protected_regular). An existing file can be of any kind, so O_NONBLOCK keeps a pipe from blocking.
    """
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.fchmod(descriptor, 0o666)  # independent of the umask
        return descriptor
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | flags)
    except PermissionError:
        return os.open(path, os.O_RDONLY | flags)  # enough for a lock


def _holder(descriptor: int) -> str:
    """The text in the lock file. Any user can write it, so only a few plain characters are accepted."""
    with suppress(OSError):  # a pipe has no offsets
        text = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip()
        return text if re.fullmatch(r"[\w ,.-]+", text) else "process unknown"
    return "process unknown"
