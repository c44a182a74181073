"""The files of the state folder. The service's user owns the folder, and root writes there too: `linkgauge accept`.

So all access goes through a descriptor of the folder and follows no symbolic link in it. Otherwise the service's user
could make root overwrite or delete any file. The path of the folder itself may contain links, which root has made.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import msgspec

from ...probes.calls.bounded_read import bounded_read

T = TypeVar("T")
CLOCK_STEP = 3600.0  # seconds; tolerance for a clock that was set back after a file was written
# The files that all users can read, for `linkgauge gate` and `linkgauge diagnose` in a job. They contain only what the
# web pages `/` and `/metrics` show to every client.
STATUS, ACCEPTED = "last.json", "accepted-public.json"
_MOST = 4 << 20  # bytes
_MODE, _PUBLIC_MODE = 0o640, 0o644
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def read_state_file(path: str, kind: type[T]) -> T:
    """Decode the file. Raises OSError, or ValueError with a message if the content cannot be used."""
    try:
        return msgspec.json.decode(bounded_read(path, _MOST, os.O_NOFOLLOW), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None


@contextmanager
def opened_folder(folder: str, below: str | None = None, create: bool = False) -> Iterator[int]:
    """A descriptor of the state folder, or of the folder `below` in it, during the block. Raises OSError."""
    if create:
        os.makedirs(folder, exist_ok=True)
    descriptor = os.open(folder, _FOLDER)
    try:
        if below is not None:
            above, descriptor = descriptor, _folder_in(descriptor, below, create)
            os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)


def _folder_in(above: int, name: str, create: bool) -> int:
    if create:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=above)
    descriptor = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    if create and os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o755)  # independent of the umask of a prolog
        give_to_owner(descriptor, above)
    return descriptor


def write_state_file(folder: str, name: str, content: bytes, lasting: bool = True, below: str | None = None) -> None:
    """Replace the file `name` of the state folder, or of the folder `below` in it. Raises OSError.

    A reader sees the old or the new content. Root gives the file to the owner of the folder. Without `lasting` there is
    no fsync: the file may be lost after a loss of power, and an idle disk stays idle.
    """
    with opened_folder(folder, below, create=True) as above:
        # The random suffix keeps collectors from reading it as *.json.
        beside = f".{name}.{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(beside, flags, 0o600, dir_fd=above)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                give_to_owner(descriptor, above)
                os.fchmod(descriptor, _PUBLIC_MODE if below is None and name in (STATUS, ACCEPTED) else _MODE)
                if lasting:
                    os.fsync(descriptor)
            os.replace(beside, name, src_dir_fd=above, dst_dir_fd=above)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside, dir_fd=above)
            raise
        if lasting:
            with suppress(OSError):  # some file systems cannot; the file is complete without it
                os.fsync(above)


def remove_state_file(folder: str, name: str) -> None:
    """Delete the file `name` of the state folder, if there is one. Raises OSError."""
    with opened_folder(folder) as above, suppress(FileNotFoundError):
        os.unlink(name, dir_fd=above)


def give_to_owner(descriptor: int, above: int) -> None:
    """As root, give what was created to the owner of the folder: the service must be able to read it."""
    if os.geteuid() == 0:
        owner = os.fstat(above)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def close_to_others(folder: str) -> None:
    """Rewrite the files of earlier versions, which all users could read. Raises OSError."""
    with opened_folder(folder) as above:
        for name in os.listdir(above):
            mode = os.stat(name, dir_fd=above, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode) and mode & stat.S_IRWXO and name.endswith(".json") and name not in (STATUS, ACCEPTED):
                with suppress(OSError, ValueError):
                    content = bounded_read(os.path.join(folder, name), 1 << 30, os.O_NOFOLLOW)
                    write_state_file(folder, name, content)
