"""Sources are asked in a thread of their own: a file of the kernel that never answers keeps nobody waiting."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..models.said import NotChecked, Run, Said
from ..probes.hang import no_answer, stuck
from ..probes.host import Host
from ..probes.question import Question
from ..probes.watched import Waiting, Watched
from .ask import ask
from .source import Source, name_of

_PATIENCE = 10.0  # seconds for one file; a driver that waits for its device may take some
_GLANCE = 1.0  # seconds between two looks; a machine that stood still meanwhile gets another one
_HOW = "the kernel's log may say which driver hangs; restart the machine if it stays so"


class _Turn:
    """One thread, which asks source after source until all are asked, or it hangs and is given up."""

    def __init__(self, todo: dict[str, Source], host: Host) -> None:
        self.heard: dict[str, tuple[Said, ...]] = {}
        self.name = ""  # of the source that is being asked
        self.said: list[Said] = []  # by that one, so far
        self.host = Watched(host)
        self.given_up = False
        self.question = Question(lambda: self._run(todo))

    def _run(self, todo: dict[str, Source]) -> None:
        for name, source in todo.items():
            if self.given_up:
                return
            self.name, self.said = name, []
            self.heard[name] = ask(source, self.host, self.said)

    def hanging(self, patience: float) -> tuple[str, str] | None:
        """The source, and the path of the file that does not answer; None once all are asked."""
        before: Waiting | None = None
        name = ""
        while not self.question.wait(time.monotonic() + min(_GLANCE, patience)):
            now = self.host.waiting
            if now and now is before and time.monotonic() - now.since > patience:
                return name, now.path
            before, name = now, self.name
        self.question.answer()
        return None


@dataclass
class Aside:
    """Asks, and remembers what hangs: that is never asked again while it does."""

    patience: float = _PATIENCE
    _hanging: dict[str, _Turn] = field(default_factory=dict)

    @property
    def stuck(self) -> int:
        """How many threads are there yet that nobody waits for any more."""
        return sum(not turn.question.wait(0) for turn in self._hanging.values())

    def ask(self, sources: Mapping[str, Source], host: Host) -> dict[str, tuple[Said, ...]]:
        """What each of them says, as far as it comes, in their order."""
        self._hanging = {name: turn for name, turn in self._hanging.items() if not turn.question.wait(0)}
        heard = {name: self._missed(name, host, stuck(name)) for name in sources if name in self._hanging}
        while todo := {name: source for name, source in sources.items() if name not in heard}:
            turn = _Turn(todo, host)
            if found := turn.hanging(self.patience):
                turn.given_up = True
                name, path = found
                self._hanging[name] = turn
                heard[name] = (*turn.said, *self._missed(name, host, f"{path}: {no_answer(self.patience)}"))
            heard.update(turn.heard)
        return {name: heard[name] for name in sources}

    def _missed(self, name: str, host: Host, why: str) -> tuple[Said, ...]:
        gap = NotChecked(what=name, subject="node", why=why, how=_HOW)
        return gap, Run(name=name, ok=False, seconds=self.patience, at=host.now())


def ask_all(readers: Iterable[Source], host: Host, patience: float = _PATIENCE) -> list[Said]:
    """What all of them say, in their order. On a live machine they are asked at once: most of the time is waiting.

    Readers only: probes would measure each other.
    """
    sources = list(readers)
    if host.origin != "live" or not sources:
        return [one for source in sources for one in ask(source, host)]

    def alone(source: Source) -> tuple[Said, ...]:
        return Aside(patience).ask({name_of(source): source}, host)[name_of(source)]

    with ThreadPoolExecutor(len(sources)) as pool:
        return [one for said in pool.map(alone, sources) for one in said]
