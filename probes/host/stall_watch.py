"""A machine that knows which of its files has been keeping somebody waiting."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from ...models.facts.records import Record
from ...models.report import Origin
from ..calls.timeouts import stuck
from .host import Host, Unreadable

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A file that was asked for and has not answered."""

    path: str
    since: float  # by a clock that does not jump


class TimedOut(BaseException):
    """Nobody listens to who asks here any more. No Exception: no source may take it for something that it expected."""


class StallWatch:
    """A Host that passes everything on but what is in `hanging` or below it. Calls have deadlines, files have none."""

    def __init__(self, host: Host, hanging: Collection[str] = ()) -> None:
        self.origin: Origin = host.origin
        self.waiting: Waiting | None = None
        self._timed_out = False  # from then on it answers nobody
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
        """Answer nobody any more; unless that has just been answered."""
        with self._deciding:
            self._timed_out = self.waiting is waiting
            return self._timed_out

    def _stop_if_timed_out(self) -> None:
        if self._timed_out:
            raise TimedOut

    def _watch(self, ask: Callable[[str], T], path: str) -> T:
        for above in self._hanging:
            if path == above or path.startswith(f"{above}/"):
                raise Unreadable(path, errno.ETIMEDOUT, stuck(above))
        self.waiting = Waiting(path, time.monotonic())
        try:
            return ask(path)
        finally:
            with self._deciding:
                self.waiting = None
            self._stop_if_timed_out()
