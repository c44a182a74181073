"""Sources are asked in a thread of their own: a file of the kernel that never answers keeps nobody waiting."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Thread

from ..models.said import Run, Said
from ..probes.hang import HOW, no_answer, stuck
from ..probes.host import Host
from ..probes.watched import GivenUp, Waiting, Watched
from .ask import ask
from .gaps import gaps
from .source import Source, name_of

_PATIENCE = 10.0  # seconds for one file; a driver that waits for its device may take some
_GLANCE = 1.0  # seconds between two looks; a machine that stood still meanwhile gets another one


class _Asker:
    """A thread, which asks source after source, until it hangs and is given up.

    It stays: children end with the thread that has started them (prctl(2), PR_SET_PDEATHSIG).
    """

    def __init__(self) -> None:
        self.heard: dict[str, tuple[Said, ...]] = {}
        self.name = ""  # of the source that is being asked
        self.said: list[Said] = []  # by that one, so far
        self.path = ""  # that hangs
        self.ended = False
        self.idle = Event()
        self._watched: Watched | None = None
        self._work: SimpleQueue[Mapping[str, Source]] = SimpleQueue()
        Thread(target=self._run, daemon=True).start()

    def begin(self, sources: Mapping[str, Source], host: Host, hanging: Collection[str]) -> None:
        """Ask them all, and none of the files that hang."""
        self.heard, self._watched = {}, Watched(host, hanging)
        self.idle.clear()
        self._work.put(sources)

    def end(self) -> None:
        """Ask nobody any more."""
        self.ended = True
        self._work.put({})

    def hanging(self, patience: float) -> tuple[str, str] | None:
        """The source, and the path of the file that does not answer; None once all are asked."""
        before: Waiting | None = None
        name = ""
        while not self.idle.wait(min(_GLANCE, patience)):
            assert self._watched
            now = self._watched.waiting
            if now and now is before and time.monotonic() - now.since > patience and self._watched.give_up(now):
                return name, now.path
            before, name = now, self.name
        return None

    def _run(self) -> None:
        while not self.ended:
            sources = self._work.get()
            with suppress(GivenUp):
                self._ask(sources)
            self.idle.set()

    def _ask(self, sources: Mapping[str, Source]) -> None:
        assert self._watched or not sources
        for name, source in sources.items():
            if self.ended or not self._watched:
                return
            self.name, self.said = name, []
            self.heard[name] = ask(source, self._watched, self.said)


@dataclass
class Aside:
    """Asks, and remembers what hangs: that is never asked again while it does."""

    patience: float = _PATIENCE
    _asker: _Asker | None = None
    _hanging: dict[str, _Asker] = field(default_factory=dict)

    @property
    def stuck(self) -> int:
        """How many threads are there yet that nobody waits for any more."""
        return sum(not asker.idle.is_set() for asker in self._hanging.values())

    def ask(self, sources: Mapping[str, Source], host: Host) -> dict[str, tuple[Said, ...]]:
        """What each of them says, as far as it comes, in their order."""
        self._hanging = {name: asker for name, asker in self._hanging.items() if not asker.idle.is_set()}
        heard = {name: self._missed(name, host, stuck(name)) for name in sources if name in self._hanging}
        while todo := {name: source for name, source in sources.items() if name not in heard}:
            asker = self._asker = self._asker or _Asker()
            asker.begin(todo, host, [one.path for one in self._hanging.values()])
            if found := asker.hanging(self.patience):
                self.close()
                name, asker.path = found
                self._hanging[name] = asker
                heard[name] = (*asker.said, *self._missed(name, host, f"{asker.path}: {no_answer(self.patience)}"))
            heard.update(asker.heard)
        return {name: heard[name] for name in sources}

    def close(self) -> None:
        """End the thread, once it is done."""
        if self._asker:
            self._asker.end()
        self._asker = None

    def _missed(self, name: str, host: Host, why: str) -> tuple[Said, ...]:
        return *gaps(name, why, HOW), Run(name=name, ok=False, seconds=self.patience, at=host.now())


def ask_all(readers: Iterable[Source], host: Host, patience: float = _PATIENCE) -> list[Said]:
    """What all of them say, in their order. On a live machine they are asked at once: most of the time is waiting.

    Readers only: probes would measure each other.
    """
    sources = list(readers)
    if host.origin != "live" or not sources:
        return [one for source in sources for one in ask(source, host)]

    def alone(source: Source) -> tuple[Said, ...]:
        with closing(Aside(patience)) as aside:
            return aside.ask({name_of(source): source}, host)[name_of(source)]

    with ThreadPoolExecutor(len(sources)) as pool:
        return [one for said in pool.map(alone, sources) for one in said]
