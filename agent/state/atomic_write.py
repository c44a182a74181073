"""Atomic writes: a reader sees the old or the new content, also during the write and after a loss of power."""

from __future__ import annotations

import os
from contextlib import suppress


def write_atomically(path: str, content: bytes) -> None:
    """Replace the content of the file at `path`, readable for every user. Follows symbolic links. Raises OSError.

    A path that is no plain file (a pipe, a terminal) is written to directly.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as pipe:
            pipe.write(content)
        return
    _replace_file(path, content)


def _replace_file(path: str, content: bytes) -> None:
    """Replace the directory entry."""
    import tempfile  # slow to import, and only writers need it

    folder, name = os.path.split(path)
    # The random suffix keeps collectors from reading it as *.prom.
    descriptor, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync(folder)


def _sync(folder: str) -> None:
    """Make the new name durable too. Some file systems cannot; the file is complete without it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
