"""Reads a machine through its file system: this machine, or one with its root mounted under a folder (`--root`)."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from functools import lru_cache

from ...models.facts.reason import Reason, is_exhausted
from ...models.facts.records import Record
from ...models.report import Origin
from ..calls.bounded_read import read_up_to
from ..calls.child import Children, unanswered
from ..calls.registry import CALLS
from ..calls.shared import SharedChildren
from .host import BIGGEST_FILE, Unreadable, follow

_NOT_HERE = (errno.ENOENT, errno.ENOTDIR)
_BOOT = "proc/sys/kernel/random/boot_id"  # random(4): new for each boot of a kernel, the same in all namespaces
# A read of a file of sysfs returns its whole text, less than a page (kernel documentation, filesystems/sysfs.rst,
# "Reading/Writing Attribute Data"). So only a longer file, that is a binary one, needs a second read.
_SYSFS, _PAGE, _WHOLE = "sys/", 4096, 1 << 16
_LINKS_LAST = 5.0  # seconds; a service reads in cycles, and a device that comes back may have a new path


class Live:
    """The machine under `root`, or a folder of dumps. Reads never follow a symbolic link out of `root`."""

    def __init__(self, root: str = "/", origin: Origin = "live", children: Children | None = None) -> None:
        self.root, self.origin = root, origin
        self._above = root.rstrip("/")
        self._children = children or SharedChildren()
        self._follow = lru_cache(maxsize=None)(self._follow_one)
        self._followed = 0.0  # monotonic seconds: when the cache was cleared

    def read(self, path: str) -> str | None:
        try:
            content = self._content(path)
        except OSError as error:
            _refused(path, error)
            return None
        if len(content) > BIGGEST_FILE:
            raise Unreadable(path, errno.EFBIG, f"larger than {BIGGEST_FILE >> 20} MiB")
        return content.decode("utf-8", "replace").rstrip()

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._real(path)))
        except OSError as error:
            _refused(path, error)
            return []

    def resolve(self, path: str) -> str | None:
        try:
            place = self._place(path)
            os.stat(f"{self._above}/{place}")
        except OSError as error:
            _refused(path, error)
            return None
        except Unreadable as loop:
            raise Unreadable(path, loop.code, loop.why) from None
        return place

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        if self.root != "/" and not (what in CALLS and CALLS[what].of_kernel and self._is_here()):
            # Every other call sees the namespaces of this process, not those of the machine under the root.
            how = "run on the machine itself, without --root"
            yield unanswered(what, Reason.OTHER_CONTEXT, "only files are read under --root", how)
            return
        yield from self._children.call(what, args, deadline)

    def now(self) -> float:
        return time.time()

    def _is_here(self) -> bool:
        """Whether the machine under the root has the kernel of this process. That is so in a container."""
        try:
            ours, theirs = Live().read(_BOOT), self.read(_BOOT)
        except Unreadable:
            return False
        return bool(ours) and ours == theirs

    def _content(self, path: str) -> bytes:
        descriptor = self._open(path)
        try:
            if path.startswith(_SYSFS):
                content = os.read(descriptor, _WHOLE)
                if len(content) < _PAGE:
                    return content
                return content + read_up_to(descriptor, BIGGEST_FILE)
            return read_up_to(descriptor, BIGGEST_FILE)
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        """A descriptor of the file. A pipe must not block, and a link must not lead out of the root."""
        if self.root == "/":
            return os.open(f"/{path}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        folder, _, name = path.rpartition("/")
        try:
            place = f"{self._above}/{self._place(folder)}/{name}"
            return os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except Unreadable as loop:
            raise Unreadable(path, loop.code, loop.why) from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        return os.open(self._real(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _real(self, path: str) -> str:
        if self.root == "/":
            return f"/{path}"
        folder, _, name = path.rpartition("/")
        try:
            return f"{self._above}/{self._end(self._place(folder), name)}"
        except Unreadable as loop:
            raise Unreadable(path, loop.code, loop.why) from None

    def _place(self, path: str) -> str:
        """The path without symbolic links. Cached, because a cycle reads hundreds of files in the same folders."""
        if time.monotonic() - self._followed > _LINKS_LAST:
            self._follow.cache_clear()
            self._followed = time.monotonic()
        return self._follow(path)

    def _follow_one(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        return self._end(self._follow(folder), name) if folder else self._end("", name)

    def _end(self, folder: str, name: str) -> str:
        """The path of `name` in a folder that contains no links. Follows `name` if it is a link."""
        path = f"{folder}/{name}" if folder else name
        return follow(path, self._readlink) if name in ("", ".", "..") or self._readlink(path) is not None else path

    def _readlink(self, path: str) -> str | None:
        try:
            return os.readlink(f"{self._above}/{path}")
        except OSError:
            return None


def _refused(path: str, error: OSError) -> None:
    """Return if the path does not exist. Raises Unreadable for every other error of the path.

    Raises OSError if there is no free descriptor: no source may take that for a property of the node.
    """
    if error.errno in _NOT_HERE:
        return
    if is_exhausted(error):
        raise error
    raise Unreadable(path, error.errno, error.strerror or str(error)) from None
