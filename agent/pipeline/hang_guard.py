"""Sources are asked in a thread of their own: a file of the kernel that never answers keeps nobody waiting."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Thread

from ...models.facts.reason import Reason
from ...models.facts.records import Record, Run
from ...probes.calls.timeouts import HOW, no_answer, stuck
from ...probes.host.host import Host
from ...probes.host.stall_watch import StallWatch, TimedOut, Waiting
from .coverage_map import gaps
from .run_source import ask
from .source import Source

_PATIENCE = 10.0  # seconds for one file; a driver that waits for its device may take some
_GLANCE = 1.0  # seconds between two looks; a machine that stood still meanwhile gets another one


class _Asker:
    """A thread, which asks source after source, until it hangs and is given up.

    It stays: children end with the thread that has started them (prctl(2), PR_SET_PDEATHSIG).
    """

    def __init__(self) -> None:
        self.collected: dict[str, tuple[Record, ...]] = {}
        self.name = ""  # of the source that is being asked
        self.said: list[Record] = []  # by that one, so far
        self.path = ""  # that hangs
        self.idle = Event()
        self._ended = False
        self._work: SimpleQueue[tuple[Sequence[Source], StallWatch] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Whether it can be asked for more."""
        return self._thread.is_alive()

    def ask(self, sources: Sequence[Source], watched: StallWatch, patience: float) -> str | None:
        """Ask them all, and wait: `heard` is what they said. If one hangs, its name; `path` is that of its file."""
        self.collected = {}
        self.idle.clear()
        self._work.put((sources, watched))
        before: Waiting | None = None
        name = ""
        while not self.idle.wait(min(_GLANCE, patience)):
            now = watched.waiting
            if now and now is before and time.monotonic() - now.since > patience and watched.give_up(now):
                self.path = now.path
                return name
            before, name = now, self.name
        return None

    def end(self) -> None:
        """Ask nobody any more."""
        self._ended = True
        self._work.put(None)

    def _run(self) -> None:
        while work := self._work.get():
            try:
                self._ask(*work)
            except TimedOut:
                pass
            finally:
                self.idle.set()

    def _ask(self, sources: Sequence[Source], watched: StallWatch) -> None:
        for source in sources:
            if self._ended:
                return
            self.name, self.said = source.name, []
            self.collected[source.name] = ask(source, watched, self.said)


@dataclass
class HangGuard:
    """Asks, and remembers what hangs: that is never asked again while it does."""

    patience: float = _PATIENCE
    _asker: _Asker | None = None
    _hanging: dict[str, _Asker] = field(default_factory=dict)

    @property
    def stuck(self) -> int:
        """How many threads are there yet that nobody waits for any more."""
        return sum(not asker.idle.is_set() for asker in self._hanging.values())

    def ask(self, sources: Iterable[Source], host: Host) -> dict[str, tuple[Record, ...]]:
        """What each of them says, as far as it comes, by name and in their order."""
        named = {source.name: source for source in sources}
        self._hanging = {name: asker for name, asker in self._hanging.items() if not asker.idle.is_set()}
        collected = {
            name: _missed(source, host, stuck(name), None, 0.0)
            for name, source in named.items()
            if name in self._hanging
        }
        while todo := [source for name, source in named.items() if name not in collected]:
            if self._asker is None or not self._asker.lives:
                self._asker = _Asker()
            asker = self._asker
            watched = StallWatch(host, [one.path for one in self._hanging.values()])
            hangs = asker.ask(todo, watched, self.patience)
            collected.update(asker.collected)
            if hangs is None:
                break
            self.close()
            self._hanging[hangs] = asker
            missed = _missed(named[hangs], host, no_answer(self.patience), asker.path, self.patience)
            collected[hangs] = (*asker.said, *missed)
        return {name: collected[name] for name in named}

    def close(self) -> None:
        """End the thread, once it is done."""
        if self._asker:
            self._asker.end()
        self._asker = None


def _missed(source: Source, host: Host, detail: str, path: str | None, seconds: float) -> tuple[Record, ...]:
    run = Run(name=source.name, ok=False, seconds=seconds, at=host.now())
    return *gaps(source, Reason.NO_ANSWER, detail, HOW, path), run


def collect_all(readers: Iterable[Source], host: Host, patience: float = _PATIENCE) -> list[Record]:
    """What all of them say, in their order. On a live machine they are asked at once: most of the time is waiting.

    Readers only: probes would measure each other.
    """
    sources = list(readers)
    if host.origin != "live" or not sources:
        return [one for source in sources for one in ask(source, host)]

    def alone(source: Source) -> tuple[Record, ...]:
        with closing(HangGuard(patience)) as hang_guard:
            return hang_guard.ask((source,), host)[source.name]

    with ThreadPoolExecutor(len(sources)) as pool:
        return [one for said in pool.map(alone, sources) for one in said]
