"""Atomic writes: a reader sees the old or the new content, also during the write and after a loss of power."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_MOST_LINKS = 40  # as the kernel: path_resolution(7)
_SHARED = stat.S_ISVTX | stat.S_IWOTH


def write_atomically(path: str, content: bytes) -> None:
    """Replace the content of the file at `path`, readable for every user. Follows symbolic links. Raises OSError.

    A path that is no plain file (a pipe, a terminal) is written to directly.
    """
    path = _without_links(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as pipe:
            pipe.write(content)
        return
    _replace_file(path, content)


def _without_links(path: str) -> str:
    """The file to which symbolic links lead. Raises OSError.

    As open(), it follows no link of another user in a folder where all users can create links, such as /tmp
    (protected_symlinks in https://docs.kernel.org/admin-guide/sysctl/fs.html). The kernel does not check a rename.
    """
    path = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):
            return path
        folder = os.path.dirname(path)
        above, owner = os.stat(folder), os.lstat(path).st_uid
        if above.st_mode & _SHARED == _SHARED and owner not in (os.geteuid(), above.st_uid):
            raise PermissionError(errno.EACCES, "a symbolic link of another user", path)
        path = os.path.join(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


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
