"""A machine whose files can be opened: this one, or one whose root is mounted under a folder (`--root`)."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from functools import lru_cache

from ..models.report import Origin
from ..models.said import Said
from .child import Children, unanswered
from .host import BIGGEST_FILE, Unreadable, follow

_NOT_HERE = (errno.ENOENT, errno.ENOTDIR)


class Live:
    """The machine under `root`, or a folder of dumps. Symbolic links never lead out of it."""

    def __init__(self, root: str = "/", origin: Origin = "live", children: Children | None = None) -> None:
        self.root, self.origin = root, origin
        self._children = children or Children()
        self._follow = lru_cache(maxsize=None)(self._follow_one)

    def read(self, path: str) -> str | None:
        try:
            with open(self._real(path), "rb", buffering=0, opener=_without_waiting) as file:
                parts, size = [], 0
                while (part := file.read(1 << 16)) and size <= BIGGEST_FILE:
                    parts.append(part)
                    size += len(part)
        except OSError as error:
            _refused(path, error)
            return None
        if size > BIGGEST_FILE:
            raise Unreadable(path, errno.EFBIG, f"larger than {BIGGEST_FILE >> 20} MiB")
        return b"".join(parts).decode("utf-8", "replace").rstrip()

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self._real(path)))
        except OSError as error:
            _refused(path, error)
            return []

    def resolve(self, path: str) -> str | None:
        try:
            os.stat(self._real(path))
        except OSError as error:
            _refused(path, error)
            return None
        return os.path.realpath(f"/{path}")[1:] if self.root == "/" else follow(path, self._readlink)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Said]:
        if self.root != "/":
            # A call would be answered by the namespaces of this process, not by those of the machine under the root.
            how = "run on the machine itself, without --root"
            yield unanswered(what, "only files are read under --root", how)
            return
        yield from self._children.ask(what, args, deadline)

    def now(self) -> float:
        return time.time()

    def _real(self, path: str) -> str:
        if self.root == "/":
            return f"/{path}"
        folder, _, name = path.rpartition("/")
        try:
            return os.path.join(self.root, follow(f"{self._follow(folder)}/{name}", self._readlink))
        except Unreadable as loop:
            raise Unreadable(path, loop.code, loop.why) from None

    def _follow_one(self, folder: str) -> str:
        return follow(folder, self._readlink)

    def _readlink(self, path: str) -> str | None:
        try:
            return os.readlink(os.path.join(self.root, path))
        except OSError:
            return None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe in the tree must not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _refused(path: str, error: OSError) -> None:
    """None for what is not here; raises Unreadable for what would not say."""
    if error.errno in _NOT_HERE:
        return
    raise Unreadable(path, error.errno, error.strerror or str(error)) from None
