"""Sources run in a thread of their own, so that a kernel file that never answers does not block the service."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from queue import SimpleQueue
from threading import Event, Thread

from msgspec import Struct, field

from ...models.facts.reason import Reason
from ...models.facts.records import Record, Run
from ...probes.calls.timeouts import HOW, no_answer, stuck
from ...probes.host.host import Host
from ...probes.host.stall_watch import StallWatch, TimedOut, Waiting
from .run_source import collect
from .source import Source

_PATIENCE = 10.0  # seconds for one file; a driver that waits for its device takes several
_POLL = 1.0  # seconds between two checks; a read is hung if two checks find it, since the machine may be suspended


class _SourceThread:
    """A thread that runs source after source until one hangs. The caller then abandons the thread.

    The thread lives between cycles: its children end with the thread that started them (prctl(2), PR_SET_PDEATHSIG).
    """

    def __init__(self) -> None:
        self.collected: dict[str, tuple[Record, ...]] = {}
        self.name = ""  # of the source that is running
        self.records: list[Record] = []  # of that source, so far
        self.path = ""  # of the file that hangs
        self.idle = Event()
        self._ended = False
        self._work: SimpleQueue[tuple[Sequence[Source], StallWatch] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Whether the thread can run further sources."""
        return self._thread.is_alive()

    def collect(self, sources: Sequence[Source], stall_watch: StallWatch, patience: float) -> str | None:
        """Run all sources and wait; `collected` holds their records. Returns the name of a source that hangs, or None.

        `path` is then the file that hangs.
        """
        self.collected = {}
        self.idle.clear()
        self._work.put((sources, stall_watch))
        before: Waiting | None = None
        name = ""
        while not self.idle.wait(min(_POLL, patience)):
            now = stall_watch.waiting
            if now and now is before and time.monotonic() - now.since > patience and stall_watch.give_up(now):
                self.path = now.path
                return name
            before, name = now, self.name
        return None

    def end(self) -> None:
        """Run no further source."""
        self._ended = True
        self._work.put(None)

    def _run(self) -> None:
        while work := self._work.get():
            try:
                self._collect(*work)
            except TimedOut:
                pass
            finally:
                self.idle.set()

    def _collect(self, sources: Sequence[Source], stall_watch: StallWatch) -> None:
        for source in sources:
            if self._ended:
                return
            self.name, self.records = source.name, []
            self.collected[source.name] = collect(source, stall_watch, self.records)


class HangGuard(Struct):
    """Runs sources, and skips those that still hang from an earlier run."""

    patience: float = _PATIENCE
    _current: _SourceThread | None = None
    _hanging: dict[str, _SourceThread] = field(default_factory=dict)

    @property
    def stuck(self) -> int:
        """The number of abandoned threads that still hang."""
        return sum(not thread.idle.is_set() for thread in self._hanging.values())

    def collect(self, sources: Iterable[Source], host: Host) -> dict[str, tuple[Record, ...]]:
        """The records of each source, by name, in the given order. A hung source keeps its records before the hang."""
        named = {source.name: source for source in sources}
        self._hanging = {name: thread for name, thread in self._hanging.items() if not thread.idle.is_set()}
        collected = {
            name: _unanswered(source, host, stuck(name), None, 0.0)
            for name, source in named.items()
            if name in self._hanging
        }
        while todo := [source for name, source in named.items() if name not in collected]:
            if self._current is None or not self._current.lives:
                self._current = _SourceThread()
            thread = self._current
            stall_watch = StallWatch(host, [one.path for one in self._hanging.values()])
            hangs = thread.collect(todo, stall_watch, self.patience)
            collected.update(thread.collected)
            if hangs is None:
                break
            self.close()
            self._hanging[hangs] = thread
            missed = _unanswered(named[hangs], host, no_answer(self.patience), thread.path, self.patience)
            collected[hangs] = (*thread.records, *missed)
        return {name: collected[name] for name in named}

    def close(self) -> None:
        """End the thread after its present source."""
        if self._current:
            self._current.end()
        self._current = None


def _unanswered(source: Source, host: Host, detail: str, path: str | None, seconds: float) -> tuple[Record, ...]:
    run = Run(name=source.name, ok=False, seconds=seconds, at=host.now())
    return *source.not_checked(Reason.NO_ANSWER, detail, HOW, path), run


def collect_all(readers: Iterable[Source], host: Host, patience: float = _PATIENCE) -> list[Record]:
    """The records of all sources, in their order. On a live machine the sources run in parallel: most of them wait.

    Do not pass probes: parallel probes would disturb each other's measurement.
    """
    sources = list(readers)
    if host.origin != "live" or not sources:
        return [one for source in sources for one in collect(source, host)]

    collected: dict[str, tuple[Record, ...]] = {}

    def alone(source: Source) -> None:
        with closing(HangGuard(patience)) as hang_guard:
            collected.update(hang_guard.collect((source,), host))

    # No ThreadPoolExecutor: the import of concurrent.futures takes more than 10 ms.
    threads = [Thread(target=alone, args=(source,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for source in sources for one in collected[source.name]]
