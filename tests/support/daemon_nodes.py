"""A daemon on a recorded node: its clocks stand still until they are told to go, its machine breaks when told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from linkgauge.agent.service.config import Config
from linkgauge.agent.service.daemon import Daemon
from linkgauge.agent.web.pages import Pages
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Record
from linkgauge.models.report import Origin, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.calls.child import unanswered
from linkgauge.probes.calls.timeouts import no_answer
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes import node


@dataclass
class Breaking:
    """A recorded machine with a clock on its wall."""

    recorded: Recorded
    wall: float = 0.0  # seconds since it was recorded
    hangs: set[str] = field(default_factory=set)  # calls that get no answer
    breaks: str | None = None  # how the path of a folder ends at which our own code fails
    asking: Event = field(default_factory=Event)  # something was asked that hangs until it is let go
    go: Event | None = None
    asked: Counter[str] = field(default_factory=Counter)  # how often each call was made
    stuck: str | None = None  # how the path of a file ends that answers only once it may go
    reads: int = 0
    origin: Origin = "live"

    def read(self, path: str) -> str | None:
        self.reads += 1
        if self.stuck and path.endswith(self.stuck):
            assert self.go
            self.asking.set()
            self.go.wait()
        return self.recorded.read(path)

    def list(self, path: str) -> list[str]:
        if self.breaks and path.endswith(self.breaks):
            raise RuntimeError(f"a bug at {self.breaks}")
        return self.recorded.list(path)

    def resolve(self, path: str) -> str | None:
        return self.recorded.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self.asked[what] += 1
        if self.go and what in self.hangs:
            self.asking.set()
            self.go.wait()
        if what in self.hangs:
            return iter([unanswered(what, Reason.NO_ANSWER, no_answer(deadline))])
        return self.recorded.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self.recorded.taken + self.wall


class Node:
    """The daemon, its machine, and the clock that does not jump."""

    def __init__(self, folder: Path, name: str = "hgx-h100", config: Config | None = None) -> None:
        self.monotonic = 1000.0
        self.host = Breaking(node(name))
        self.pages = Pages(monotonic=lambda: self.monotonic)
        self.daemon = Daemon(
            self.host,
            config or Config(),
            Site(),
            self.pages,
            str(folder),
            monotonic=lambda: self.monotonic,
            rng=random.Random(1),
        )

    def close(self) -> None:
        """End the thread in which sources are asked."""
        self.daemon.hang_guard.close()

    def cycle(self, times: int = 1) -> Report:
        """So many cycles, each of which follows on the time until the next."""
        for _ in range(times):
            report = self.daemon.cycle()
            self.go(self.daemon.every)
        return report

    def go(self, seconds: float) -> None:
        self.monotonic += seconds
        self.host.wall += seconds
