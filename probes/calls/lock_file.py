"""Lock files. Only root, the service's user and the group `linkgauge` can open them, so no other user can lock them."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from .hold import folder, give_to_group, own_folder, owner, remove

_TRIES = 3
# open(2): a symbolic link, a folder, a socket or device, and a file that its owner removed in between
_OTHER_KINDS = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV, errno.ENOENT)


def open_lock_file(name: str) -> int:
    """The descriptor of a lock file, which is created if there is none. Raises OSError.

    A user who may not open the lock of the machine gets one of their own: their measurements wait for each other, and
    nobody else waits for them.
    """
    try:
        return _opened(os.path.join(folder(), name))
    except PermissionError:
        return _opened(os.path.join(own_folder(), name))


def _opened(path: str) -> int:
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            _share(descriptor)
            return descriptor
        if (existing := _existing(path)) is not None:
            return existing
        remove(path)
    raise OSError(errno.EBUSY, "another process replaces this file again and again", path)


def _existing(path: str) -> int | None:
    """The descriptor of the file. None: it is no lock file, since it has another kind or owner. Raises OSError."""
    try:
        # An existing file can be of any kind, so O_NONBLOCK keeps a pipe from blocking.
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as refused:
        if refused.errno in _OTHER_KINDS:
            return None
        raise
    status = os.fstat(descriptor)
    if owner(status) is None or status.st_mode & stat.S_IRWXO:
        os.close(descriptor)
        return None
    if os.geteuid() == 0:
        _share(descriptor)  # root can have created it before there was a group
    return descriptor


def _share(descriptor: int) -> None:
    """Let the group open the lock file, if there is a group."""
    os.fchmod(descriptor, 0o660 if give_to_group(descriptor) else 0o600)
