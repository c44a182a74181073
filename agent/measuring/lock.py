"""Two runs that measure the same machine would measure each other: one lock, held while bytes move."""

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
    """Hold the lock; or why that is not possible, in words, and it is not held."""
    path = os.path.join(folder(), _NAME)
    try:
        descriptor = _opened(path)
    except OSError as refused:
        yield f"the lock {path} cannot be had: {refused.strerror}"
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield f"another run measures this machine ({_holder(descriptor)})"
            return
        # Who holds it, for whoever finds it held. A file of another user may be for reading alone.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield None
    finally:
        os.close(descriptor)  # which lets go of it; so does the end of the process, whatever ends it


def is_locked() -> str | None:
    """Who measures this machine now, in words; None where nobody does."""
    with locked() as why:
        return why


def _opened(path: str) -> int:
    """A file that everybody may lock.

    Created only where nothing is: with O_CREAT the kernel refuses what another user left in a folder of everybody's
    (fs.protected_regular). It may be anything that somebody has put there: a pipe must not block.
    """
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.fchmod(descriptor, 0o666)  # whatever the umask takes
        return descriptor
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, os.O_RDWR | flags)
    except PermissionError:
        return os.open(path, os.O_RDONLY | flags)  # enough for a lock


def _holder(descriptor: int) -> str:
    """What is written there: by anybody, so that only letters and digits are told."""
    with suppress(OSError):  # a pipe has no places
        text = os.pread(descriptor, 100, 0).decode("utf-8", "replace").strip()
        return text if re.fullmatch(r"[\w ,.-]+", text) else "process unknown"
    return "process unknown"
