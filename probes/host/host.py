"""The seam between sources and a machine: this one, one mounted under a folder, or a recorded one."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import NotChecked, Record
from ...models.report import Origin

BIGGEST_FILE = 16 << 20  # bytes; nothing that we read of a healthy machine comes near
_MOST_LINKS = 40  # as the kernel's MAXSYMLINKS


class Unreadable(Exception):
    """A path that is there and would not say: no permission, an I/O error, a symlink loop, too large."""

    def __init__(self, path: str, code: int | None, why: str) -> None:
        super().__init__(why)
        self.path, self.code, self.why = path, code, why

    @property
    def reason(self) -> Reason:
        """The reason, by the error number."""
        return reason_of(self.code)

    @property
    def how(self) -> str | None:
        """What would bring it back, where that is known."""
        return "run as root" if self.code in (errno.EACCES, errno.EPERM) else None

    def missed(self, what: str, subject: str, path: str) -> NotChecked:
        """The NotChecked for what the file would have given; `path` is the path that the caller read."""
        return NotChecked(what=what, subject=subject, reason=self.reason, path=path, detail=self.why, how=self.how)


class Host(Protocol):
    """Paths are relative to the machine's root: "sys/class/net". Text comes without the white space at its end."""

    origin: Origin

    def read(self, path: str) -> str | None:
        """The text of a file; None: not here. Raises Unreadable."""

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; none where it is not here. Raises Unreadable."""

    def resolve(self, path: str) -> str | None:
        """The path without symbolic links; None: not here. Raises Unreadable."""

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        """Ask what is no file (a driver, a system call, a copy), in a child that is killed after `deadline` seconds."""

    def now(self) -> float:
        """Seconds since 1970."""


def follow(path: str, readlink: Callable[[str], str | None]) -> str:
    """`path` without symbolic links, never leaving the root: an absolute target starts there again.

    `readlink` gives the target of a link, None for what is none. Raises Unreadable for a loop.
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
