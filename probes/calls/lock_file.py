"""Lock files. Only root, the service's user and the group `linkgauge` can open them, so no other user can lock them."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from .hold import folder, give_to_group, own_folder, owner

_TRIES = 3


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
            os.fchmod(descriptor, 0o660 if give_to_group(descriptor) else 0o600)
            return descriptor
        # An existing file can be of any kind, so O_NONBLOCK keeps a pipe from blocking.
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        if owner(status) is not None and not status.st_mode & stat.S_IRWXO:
            return descriptor
        os.close(descriptor)
        os.unlink(path)
    raise PermissionError(errno.EACCES, "it belongs to another user", path)
