"""A source of the service: the management controller, read seldom and in its own thread, so that no cycle waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

from ...models.facts.bmc import BmcLink
from ...models.facts.machine import Pci
from ...models.facts.records import Record
from ...probes.host.host import Host, Unreadable
from ...probes.redfish import Controller, ask, known_devices, late
from ..pipeline.source import Source

_LATE = 120.0  # seconds; a reading ends by itself after 60 s, unless the controller sends byte after byte


class RedfishSource:
    """Keeps the records of the last reading. A reading that never ends is reported, and no second one begins."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._controller: Controller | None = None
        self._every = 0.0
        self._began: float | None = None  # the last reading
        self._thread: Thread | None = None
        self._records: tuple[Record, ...] = ()
        self._used = False

    def configure(self, controller: Controller | None, every: float) -> None:
        """Ask this controller from now on, every so many seconds. None: ask none."""
        if controller != self._controller:
            self._controller, self._began, self._thread, self._records = controller, None, None, ()
        self._every = every
        self._used = self._used or controller is not None

    def sources(self) -> list[Source]:
        """One source; none if there never was a controller. Without a controller it has no records."""
        return [Source("redfish", self._read)] if self._used else []

    def _read(self, host: Host) -> Iterator[Record]:
        if self._controller is None:
            return
        with suppress(Unreadable):  # the sources of sysfs report it
            known = known_devices(host)
            now, running = self._monotonic(), self._thread is not None and self._thread.is_alive()
            if not running and (self._began is None or now >= self._began + self._every):
                self._start(self._controller, known, now)
            elif running and self._began is not None and now - self._began > _LATE:
                yield late(now - self._began)
                return
            # A device that has left since the reading must not come back by it.
            yield from (one for one in self._records if not isinstance(one, BmcLink | Pci) or one.key in known)

    def _start(self, controller: Controller, known: frozenset[str], now: float) -> None:
        def read() -> None:
            records = tuple(ask(controller, known))
            if controller is self._controller:  # else the configuration has changed meanwhile
                self._records = records

        self._began = now
        self._thread = Thread(target=read, name="linkgauge-redfish", daemon=True)
        self._thread.start()
