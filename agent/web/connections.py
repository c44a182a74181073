"""The connections of the web server: a limit that holds, and little work for clients that send nothing or slowly.

A connection first waits here until its request is complete; then tornado answers it. With too many connections in one
of these two states, the oldest of that state is closed. That is never a scraper's connection, which lasts a
millisecond. So a flood is accepted and closed in some ten microseconds for each connection, and a scrape does not wait
behind it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import resource
import select
import socket
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, TypeVar

_WAITING, _ANSWERED = 256, 128  # connections in each of the two states
_RESERVED = 256  # descriptors for sources, files and child processes
_BATCH = 16  # connections accepted before those that wait are looked at; fewer than may wait
_BATCHES = 16  # batches before answers are sent
_REST = 0.002  # seconds between two rounds of a flood: many connections in a round need half of the processor time
_PAUSE = 1.0  # seconds without accepting, after the kernel gave no descriptor
_QUIET = 60.0  # seconds between two equal log messages
BACKLOG = 4096  # the kernel lowers it to net.core.somaxconn
_END = re.compile(rb"\r?\n\r?\n")  # of the headers, as tornado reads them
_RECORD = 5  # bytes of the header of a TLS record: RFC 8446, 5.1
_log = logging.getLogger("linkgauge")
K = TypeVar("K", bound=Hashable)


def most_connections() -> tuple[int, int]:
    """How many connections may wait, and how many may be answered: enough descriptors are left for reading the node."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = soft - _RESERVED if soft != resource.RLIM_INFINITY else _WAITING + _ANSWERED
    share = min(1.0, free / (_WAITING + _ANSWERED))
    return max(_BATCH + 1, int(_WAITING * share)), max(_BATCH, int(_ANSWERED * share))


def add_limited(entries: dict[K, float], entry: K, most: int, close: Callable[[K], None]) -> None:
    """Add the entry with the present time. If there are too many, close and remove the oldest."""
    while len(entries) >= most:
        oldest = next(iter(entries))
        del entries[oldest]
        close(oldest)
    entries[entry] = time.monotonic()


class Door:
    """Accepts connections on a listening socket and passes each on when its request is complete."""

    def __init__(
        self,
        listening: socket.socket,
        admit: Callable[[socket.socket, Any], None],
        most: int,
        seconds: float,
        headers: int,
        tls: bool = False,
    ) -> None:
        """Call it in the event loop. `admit` takes a connection and its address.

        `most`: connections that may wait. `seconds`: the deadline of a request. `headers`: the most bytes that are
        looked at. `tls`: a request is complete here when the first TLS record is.
        """
        self.tls = tls
        self._listening, self._admit = listening, admit
        self._most, self._seconds, self._headers = most, seconds, headers
        self._waiting: dict[int, float] = {}  # descriptor -> time of its arrival, the oldest first
        self._sockets: dict[int, tuple[socket.socket, Any]] = {}
        self._refused = -_QUIET
        self._loop = asyncio.get_running_loop()
        self._events = select.epoll()
        self._loop.add_reader(self._events.fileno(), self._look)
        self._loop.add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        """Stop listening and close all connections that wait."""
        for descriptor in (self._listening.fileno(), self._events.fileno()):
            self._loop.remove_reader(descriptor)
        for descriptor in list(self._waiting):
            self._drop(descriptor)
        self._events.close()
        self._listening.close()

    def sweep(self) -> None:
        """Close connections whose request was not complete in time."""
        end = time.monotonic() - self._seconds
        for descriptor in [one for one, since in self._waiting.items() if since < end]:
            self._drop(descriptor)

    def _accept(self) -> None:
        for number in range(_BATCHES * _BATCH):
            if number % _BATCH == 0:
                self._look()  # a complete request leaves before the next connections close it as the oldest
            try:
                connection, address = self._listening.accept()
                descriptor = connection.fileno()
                self._sockets[descriptor] = connection, address
                add_limited(self._waiting, descriptor, self._most, self._close)
                # Edge-triggered: one event for each arrival of bytes, so a slow client costs nothing in between.
                self._events.register(descriptor, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
            except BlockingIOError:
                if len(self._waiting) >= self._most:
                    self._rest(_REST)
                return
            except ConnectionAbortedError:
                continue
            except OSError as refused:
                self._pause(refused)
                return

    def _pause(self, refused: OSError) -> None:
        self._rest(_PAUSE)
        if time.monotonic() - self._refused >= _QUIET:
            self._refused = time.monotonic()
            _log.warning("the web server cannot accept connections: %s", refused.strerror)

    def _rest(self, seconds: float) -> None:
        """Accept nothing for a while. The kernel keeps new connections in its queue."""
        self._loop.remove_reader(self._listening.fileno())
        self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _look(self) -> None:
        for descriptor, event in self._events.poll(0):
            if descriptor not in self._waiting:
                continue
            try:
                seen = self._sockets[descriptor][0].recv(self._headers + 1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            except OSError:
                seen = b""
            if self._is_complete(seen):
                del self._waiting[descriptor]
                self._events.unregister(descriptor)
                with suppress(OSError):  # the client has closed the connection
                    self._admit(*self._sockets.pop(descriptor))
            elif not seen or event & (select.EPOLLRDHUP | select.EPOLLHUP):
                self._drop(descriptor)

    def _is_complete(self, seen: bytes) -> bool:
        """Whether tornado can answer, or refuse, without waiting for the client."""
        if len(seen) > self._headers:
            return True
        if self.tls:
            return len(seen) >= _RECORD and len(seen) >= _RECORD + int.from_bytes(seen[3:5], "big")
        return _END.search(seen) is not None

    def _drop(self, descriptor: int) -> None:
        del self._waiting[descriptor]
        self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        connection, _ = self._sockets.pop(descriptor)
        with suppress(OSError):
            connection.recv(self._headers + 1, socket.MSG_DONTWAIT)  # with unread bytes the client would get a reset
        connection.close()  # epoll(7) forgets it
