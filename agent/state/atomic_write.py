"""Files that are there whole: who reads meanwhile, or after a loss of power, sees the old one or the new."""

from __future__ import annotations

import os
from contextlib import suppress


def write_whole(path: str, content: bytes) -> None:
    """Put the content in the place of the file at `path`, readable for everybody. Raises OSError.

    What is no plain file (a pipe, a terminal) is written to as it is; a symbolic link leads to the file.
    """
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as pipe:
            pipe.write(content)
        return
    put(path, content)


def put(path: str, content: bytes, lasting: bool = True) -> None:
    """The same in the place of whatever is there, a link too: for root in a folder of another user. Raises OSError.

    What is not `lasting` may be gone after a loss of power: a disk need not wake up for it.
    """
    import tempfile  # only who writes waits for it

    folder, name = os.path.split(path)
    descriptor, beside = tempfile.mkstemp(prefix=f".{name}.", dir=folder)  # its end is no ".prom", which would be read
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            if lasting:
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    if lasting:
        _sync(folder)


def _sync(folder: str) -> None:
    """The name too outlives a loss of power; some file systems cannot do that, and the file is whole without it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
