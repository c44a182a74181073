"""Send the result of each cycle to another system, in a thread of its own: a receiver that hangs delays no cycle."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Thread
from typing import Generic, TypeVar

T = TypeVar("T")

_BACKOFF = (1.0, 5.0, 15.0, 60.0)  # seconds before the next attempts
_log = logging.getLogger("linkgauge")


class TryAgain(Exception):
    """The receiver did not take the value. The message says why."""


class BackgroundSender(Generic[T]):
    """Hands the newest value to `send`. A value that a newer one replaces before it was sent is dropped.

    After `TryAgain` it waits, longer each time, and then sends the newest value. Other exceptions are faults of our
    own: they are logged, and the value is dropped.
    """

    def __init__(self, name: str, send: Callable[[T], None], backoff: tuple[float, ...] = _BACKOFF) -> None:
        self._name, self._send, self._backoff = name, send, backoff
        self._changed = Condition()
        self._waiting: list[T] = []  # the newest value, if it was not sent
        self._ended = False
        self._failed: str | None = None  # the failure that was logged
        self._thread = Thread(target=self._run, name=f"linkgauge-{name}", daemon=True)
        self._thread.start()

    def offer(self, value: T) -> None:
        """Replace the value to send. Returns at once."""
        with self._changed:
            self._waiting[:] = [value]
            self._changed.notify()

    def close(self, seconds: float = 1.0, last: T | None = None) -> None:
        """End the thread, and wait for it for so many seconds at most. It tries once to send `last` before."""
        with self._changed:
            self._ended = True
            self._waiting[:] = [] if last is None else [last]
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        tries = 0
        while (values := self._next()) is not None:
            try:
                self._send(values[0])
            except TryAgain as why:
                self._log(str(why))
                self._wait(self._backoff[min(tries, len(self._backoff) - 1)], values[0])
                tries += 1
            except Exception:
                _log.exception("%s: a bug in linkgauge: please report it", self._name)
            else:
                self._log(None)
                tries = 0

    def _next(self) -> list[T] | None:
        """The value to send, as a list of one; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            values = self._waiting[:]
            self._waiting.clear()
            return values or None

    def _wait(self, seconds: float, value: T) -> None:
        """Wait before the next attempt, which sends this value again unless a newer one has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)
            if not self._waiting and not self._ended:
                self._waiting[:] = [value]

    def _log(self, why: str | None) -> None:
        """Log a failure once, and when it ends."""
        if why and self._failed is None:
            _log.warning("%s: %s: tried again later", self._name, why)
        elif self._failed and not why:
            _log.info("%s: accepted again", self._name)
        self._failed = why
