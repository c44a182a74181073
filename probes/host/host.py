"""The interface between sources and a machine: this machine, a mounted root, or a capture."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked, Record
from ...models.report import Origin

BIGGEST_FILE = 16 << 20  # bytes; files of a healthy machine are far smaller
_MOST_LINKS = 40  # as the kernel's MAXSYMLINKS


class Unreadable(Exception):
    """A path that exists and cannot be read: no permission, an I/O error, a symlink loop, too large."""

    def __init__(self, path: str, code: int | None, why: str, reason: Reason | None = None) -> None:
        super().__init__(why)
        self.path, self.code, self.why = path, code, why
        self.reason = reason or reason_of(code)

    @property
    def how(self) -> str | None:
        """The remedy, if it is known."""
        return "run as root" if self.code in (errno.EACCES, errno.EPERM) else None

    def missed(self, what: str, subject: str, path: str) -> NotChecked:
        """The NotChecked for the value `what` of the file. `path` is the path that the caller read."""
        return NotChecked(what=what, subject=subject, reason=self.reason, path=path, detail=self.why, how=self.how)


class Host(Protocol):
    """Reads one machine. Paths are relative to its root: "sys/class/net". Text has no white space at its end."""

    origin: Origin

    def read(self, path: str) -> str | None:
        """The text of a file. None: no such file. Raises Unreadable."""

    def list(self, path: str) -> list[str]:
        """The sorted names in a folder. Empty: no such folder. Raises Unreadable."""

    def resolve(self, path: str) -> str | None:
        """The path without symbolic links. None: no such path. Raises Unreadable."""

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        """Run a call (driver, system call, copy) in a child process that is killed after `deadline` seconds."""

    def now(self) -> float:
        """Seconds since 1970."""


def exists(host: Host, path: str) -> bool:
    """Whether the path exists and can be resolved. A path that this process may not resolve counts as absent."""
    try:
        return host.resolve(path) is not None
    except Unreadable:
        return False


def follow(path: str, readlink: Callable[[str], str | None]) -> str:
    """`path` without symbolic links. It never leaves the root: an absolute target starts at the root.

    `readlink` returns the target of a link, and None if the path is no link. Raises Unreadable for a loop.
    """
    todo, done, links = deque(path.split("/")), list[str](), 0
    while todo:
        part = todo.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            del done[-1:]
            continue
        target = readlink("/".join((*done, part)))
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            raise Unreadable(path, errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            done = []
        todo.extendleft(reversed(target.split("/")))
    return "/".join(done)
