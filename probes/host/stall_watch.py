"""A Host that knows which file it is reading, and since when."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from threading import Lock
from typing import TypeVar

from msgspec import Struct

from ...models.facts.reason import Reason
from ...models.facts.records import Record
from ...models.report import Origin
from ..calls.timeouts import stuck
from .host import Host, Unreadable

T = TypeVar("T")


class Waiting(Struct, frozen=True, eq=False):
    """A file whose read has not returned yet."""

    path: str
    since: float  # monotonic seconds


class TimedOut(BaseException):
    """Raised in a thread whose caller has timed out. A BaseException, so that no source catches it by accident."""


class StallWatch:
    """Passes all reads to `host`, except for the paths in `hanging` and below them.

    Calls have deadlines, files have none. Therefore only files are watched.
    """

    def __init__(self, host: Host, hanging: Collection[str] = ()) -> None:
        self.origin: Origin = host.origin
        self.waiting: Waiting | None = None
        self._timed_out = False  # if True, each further read raises TimedOut
        self._deciding = Lock()
        self._host, self._hanging = host, hanging

    def read(self, path: str) -> str | None:
        return self._watch(self._host.read, path)

    def list(self, path: str) -> list[str]:
        return self._watch(self._host.list, path)

    def resolve(self, path: str) -> str | None:
        return self._watch(self._host.resolve, path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self._stop_if_timed_out()
        yield from self._host.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self._host.now()

    def give_up(self, waiting: Waiting) -> bool:
        """Refuse all further reads, unless the read `waiting` has just returned. Returns whether they are refused."""
        with self._deciding:
            self._timed_out = self.waiting is waiting
            return self._timed_out

    def _stop_if_timed_out(self) -> None:
        if self._timed_out:
            raise TimedOut

    def _watch(self, read: Callable[[str], T], path: str) -> T:
        for above in self._hanging:
            if path == above or path.startswith(f"{above}/"):
                raise Unreadable(path, None, stuck(above), Reason.NO_ANSWER)
        self.waiting = Waiting(path, time.monotonic())
        try:
            return read(path)
        finally:
            with self._deciding:
                self.waiting = None
            self._stop_if_timed_out()
