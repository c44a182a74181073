"""A daemon on a recorded node. Its clocks move and its machine breaks only on a test's request."""

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
from tests.support.nodes.described import node


@dataclass
class Breaking:
    """A recorded machine with an adjustable wall clock."""

    recorded: Recorded
    wall: float = 0.0  # seconds since the recording
    hangs: set[str] = field(default_factory=set)  # calls without an answer
    failing_folder: str | None = None  # end of the path of a folder whose listing raises an error of our own code
    hanging: Event = field(default_factory=Event)  # a hanging call or read has begun
    go: Event | None = None
    call_counts: Counter[str] = field(default_factory=Counter)  # number of calls by name
    stuck_file: str | None = None  # end of the path of a file that answers only after `go`
    reads: int = 0
    origin: Origin = "live"

    def read(self, path: str) -> str | None:
        self.reads += 1
        if self.stuck_file and path.endswith(self.stuck_file):
            assert self.go
            self.hanging.set()
            self.go.wait()
        return self.recorded.read(path)

    def list(self, path: str) -> list[str]:
        if self.failing_folder and path.endswith(self.failing_folder):
            raise RuntimeError(f"a bug at {self.failing_folder}")
        return self.recorded.list(path)

    def resolve(self, path: str) -> str | None:
        return self.recorded.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self.call_counts[what] += 1
        if self.go and what in self.hangs:
            self.hanging.set()
            self.go.wait()
        if what in self.hangs:
            return iter([unanswered(what, Reason.NO_ANSWER, no_answer(deadline))])
        return self.recorded.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self.recorded.taken + self.wall


class Node:
    """The daemon, its machine, and its monotonic clock."""

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
        """End the thread that collects from sources."""
        self.daemon.hang_guard.close()

    def cycle(self, times: int = 1) -> Report:
        """Run cycles. After each, the clocks move to the next cycle."""
        for _ in range(times):
            report = self.daemon.cycle()
            self.go(self.daemon.every)
        return report

    def go(self, seconds: float) -> None:
        self.monotonic += seconds
        self.host.wall += seconds
