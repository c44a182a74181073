"""The live view: readings, keys and signals change what the screen shows."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Event
from types import FrameType
from typing import Any, Protocol

from ...models.traffic.reading import Reading
from ...models.traffic.selection import Choice
from ...models.traffic.view import View, advance
from .controls import Controls, pressed
from .frame import frame
from .screen import Screen, shown

_GATHER = 0.1  # seconds from the first new sample to its frame: the samples of all groups share a frame
_IDLE = 3600.0  # seconds


class Feed(Protocol):
    """Where readings come from. `wanted`: how many samples of each group make a complete view."""

    wanted: tuple[int, ...]

    def start(self, put: Callable[[int, Any], None], end: Event) -> None:
        """Start threads that pass the number of their group and each sample to `put` until `end` is set."""

    def take(self, samples: Iterable[Any]) -> Reading:
        """The reading after further samples; there is at least one."""


class Views:
    """The views of a feed. `wake` is a descriptor that can be read when there are new samples."""

    def __init__(self, feed: Feed) -> None:
        self.view = View()
        self._feed, self._queue, self._end = feed, SimpleQueue[tuple[int, Any]](), Event()
        self._left = list(feed.wanted)
        self.wake, self._waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._waker, False)

    @property
    def is_complete(self) -> bool:
        """Whether each group has given the samples that rates need."""
        return max(self._left) <= 0

    @contextmanager
    def running(self) -> Iterator[int]:
        """Read during the block. Yields a descriptor: a byte that is written to it wakes the reader."""
        self._feed.start(self._put, self._end)
        try:
            yield self._waker
        finally:
            self._end.set()

    def _put(self, group: int, sample: Any) -> None:
        self._queue.put((group, sample))
        with suppress(BlockingIOError):  # it is full: the reader wakes anyway
            os.write(self._waker, b"\0")

    def update(self) -> None:
        """Take the new samples."""
        with suppress(BlockingIOError):
            while os.read(self.wake, 1 << 12):
                pass
        samples = []
        with suppress(Empty):
            while True:
                group, sample = self._queue.get_nowait()
                self._left[group] -= 1
                samples.append(sample)
        if samples:
            self.view = advance(self.view, self._feed.take(samples))


def views(feed: Feed, interval: float) -> Iterator[View]:
    """Complete views: the first one as soon as possible, then one in each interval of so many seconds."""
    found = Views(feed)
    with found.running():
        until = 0.0
        while True:
            left = until - time.monotonic()
            if left <= 0 and found.is_complete:
                until = time.monotonic() + interval
                yield found.view
                continue
            select.select([found.wake], [], [], left if left > 0 else _IDLE)
            found.update()


def show(feed: Feed, choice: Choice, colour: bool) -> None:
    """Show the view on the terminal until the user or a signal ends it."""
    screen, live, signals = Screen(), Views(feed), _Signals()
    controls = Controls(choice=choice)
    with live.running() as waker, signals.handled(waker), shown(screen):
        view = live.view
        while not (signals.ended or controls.ended):
            live.update()
            view = view if controls.paused else live.view
            screen.draw(frame(view, controls, *screen.size, colour))
            ready = _readable([0, live.wake], _IDLE)
            ready = ready if 0 in ready else _readable([0], _GATHER)
            try:
                for key in screen.pressed() if 0 in ready else ():
                    controls = pressed(controls, key)
            except (EOFError, OSError):  # the terminal has gone
                return
            if signals.continued:
                signals.continued = False
                screen.enter()


def _readable(descriptors: Sequence[int], seconds: float) -> Sequence[int]:
    """Those that can be read within so many seconds. Python continues to wait after a signal (PEP 475)."""
    return select.select(descriptors, [], [], max(0.0, seconds))[0]


class _Signals:
    """The signals that arrived."""

    def __init__(self) -> None:
        self.ended = self.continued = False

    def end(self, number: int, frame: FrameType | None) -> None:
        self.ended = True

    def resume(self, number: int, frame: FrameType | None) -> None:
        self.continued = True

    @contextmanager
    def handled(self, waker: int) -> Iterator[None]:
        """Handle signals during the block. Each one writes a byte to `waker`."""
        handlers = {
            signal.SIGINT: self.end,
            signal.SIGTERM: self.end,
            signal.SIGHUP: self.end,
            signal.SIGCONT: self.resume,
            signal.SIGWINCH: lambda number, frame: None,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
