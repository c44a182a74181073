"""The service: a look every few seconds, a page of it for Prometheus, and nothing in anyone's way."""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ...exporters.metrics.sample import Round
from ...models.facts.records import Observation, Record, Run
from ...models.report import Report
from ...models.site.gate import causes
from ...models.site.schema import Site
from ...probes.host.guarded import SIGNS
from ...probes.host.host import Host, Unreadable
from ..measuring.budget import budget_of
from ..measuring.session import MeasurementOptions, Session
from ..pipeline.diagnose import Memory, Probes, cycle
from ..pipeline.hang_guard import HangGuard
from ..pipeline.registry import SOURCES
from ..pipeline.source import Interval, Read, Source
from ..state import acceptance as state
from ..state import status_file as last
from ..state.state_file import CLOCK_STEP
from ..web.pages import Pages
from . import checkpoint as kept
from .config import Config, seconds
from .job_window import followed
from .schedule import Intervals, Turn, due, turned

_SAVED = 300.0  # seconds from one time that all is kept to the next, while nothing changes
_STALE = 2  # schedules after which what was observed is told no more
_ANSWER = 5.0  # seconds for what the driver's child has at hand
_log = logging.getLogger("linkgauge")


@dataclass
class Daemon:
    """What a service knows between two cycles. `pause` is called at every step, so that no burst is long."""

    host: Host
    config: Config
    site: Site
    pages: Pages
    folder: str  # of its state
    memory: Memory = field(default_factory=Memory)
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[], None] = lambda: None
    forget: Callable[[], None] = lambda: None  # where links led: devices may have come or gone
    stuck: Callable[[], int] = lambda: 0
    traffic: Read = lambda host: ()  # what jobs sent through ports since it was asked last
    chance: random.Random = field(default_factory=random.Random)
    hang_guard: HangGuard = field(default_factory=HangGuard)
    turns: dict[str, Turn] = field(default_factory=dict)
    moved: Counter[str] = field(default_factory=Counter)
    report: Report | None = None
    busy: bool = False
    began: float = 0.0  # the last cycle
    peaks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of each open window, as in last.py
    _signs: tuple[object, ...] = ()
    _probe_at: float | None = None
    _saved_at: float | None = None
    _accepted: int | None = None
    _wrong: dict[str, str | None] = field(default_factory=dict)  # why files could not be written, in words

    def cycle(self) -> Report:
        """Ask what is due, judge, show."""
        began, at = self.monotonic(), self.host.now()
        self.began = began
        before = self._signs
        self.hang_guard.ask((Source("signs", self._read_signs),), self.host)
        changed = bool(before) and before != self._signs
        asked = due(SOURCES, self.turns, self._intervals(), began, changed)
        if any(source.interval is Interval.DISCOVERY for source in asked):
            self.forget()
        session = self._session(began)
        sources = [*map(self._paced, asked), Source("traffic", self.read_traffic)]
        self._forget_rates(at)
        self._take_acceptance()
        self.memory, report = cycle(
            self.host, sources, self.site, self.memory, self._probes(session), self.pause, self.hang_guard.ask
        )
        fresh = {source.name: self.memory.collected[source.name] for source in asked}
        self.turns = turned(self.turns, fresh, began)
        self._count(*fresh.values(), self.memory.measured if session else ())
        self.busy = any(one.quantity == "processes" and one.value for one in report.observations)
        self._tell(report)
        self.pages.put(report, self._round(report, at, began))
        self._write_textfile()
        self._write_last(report)
        self._keep(report)
        self.report = report
        return report

    @property
    def every(self) -> float:
        """Seconds from one cycle to the next, at present."""
        return seconds(self.config.cycle_busy if self.busy else self.config.cycle)

    def save(self) -> None:
        """Keep what a restart should not forget. Where that is not possible, it is said once."""
        self._saved_at = self.monotonic()
        refused = kept.save(self.folder, self.memory, self.host.now())
        self._say_once(self.folder, refused and f"{refused}: a restart will forget what is known")

    def _write_textfile(self) -> None:
        """For the collector of node_exporter, where the configuration names a file."""
        path = self.config.textfile
        if path is None:
            return
        from ..state.atomic_write import write_whole

        try:
            write_whole(os.path.abspath(path), self.pages.read("metrics"))
        except OSError as refused:
            self._say_once(path, f"{path}: {refused.strerror}: not written")
        else:
            self._say_once(path, None)

    def _write_last(self, report: Report) -> None:
        """For gates, and for what the time of a job saw."""
        path = os.path.join(self.folder, last.FILE)
        self.peaks = followed(self.folder, self.peaks, self.memory.collected["traffic"])
        try:
            last.write(self.folder, report, self.host.now(), self.every, self.peaks)
        except OSError as refused:
            self._say_once(path, f"{path}: {refused.strerror}: no gate knows how this node is")
        else:
            self._say_once(path, None)

    def _say_once(self, path: str, wrong: str | None) -> None:
        """What does not work for long is a line in the log, not one a cycle."""
        before = self._wrong.get(path)
        if wrong and wrong != before:
            _log.warning(wrong)
        elif before and not wrong:
            _log.info("%s: written again", path)
        self._wrong[path] = wrong

    def _intervals(self) -> Intervals:
        return Intervals(self.every, seconds(self.config.slow), seconds(self.config.discovery))

    def _read_signs(self, host: Host) -> Iterable[Record]:
        """The names of devices: where they are others than before, something was plugged, bound or lost."""

        def names(path: str) -> tuple[str, ...]:
            with suppress(Unreadable):
                return tuple(host.list(path))
            return ()

        self._signs = tuple(map(names, SIGNS))
        return ()

    def _paced(self, source: Source) -> Source:
        def paced(host: Host) -> Iterator[Record]:
            for said in source.read(host):
                yield said
                self.pause()
            self.pause()

        return replace(source, read=paced)

    def read_traffic(self, host: Host) -> Iterable[Record]:
        """A source: what jobs sent through ports and NVLinks since it was asked last."""
        yield from self.traffic(host)
        if self.busy:
            for one in host.call("nvml_traffic", f"{_STALE * self.every:g}", deadline=_ANSWER):
                if isinstance(one, Observation):  # why there is none, the readers of GPUs say
                    yield one

    def _session(self, now: float) -> Session | None:
        """The measuring that is due; none where the configuration wants none. The first comes within one schedule."""
        probing = self.config.probes
        if probing.every is None:
            self._probe_at = None
            return None
        if self._probe_at is None:
            self._probe_at = now + self.chance.uniform(0, seconds(probing.every))
        if now < self._probe_at:
            return None
        self._probe_at = now + seconds(probing.every) + self.chance.uniform(0, seconds(probing.jitter))
        budget = budget_of(probing.budget, probing.level) if probing.budget else None
        options = MeasurementOptions(
            effort=probing.level, budget=budget, only=frozenset(probing.only), skip=frozenset(probing.skip)
        )
        return Session(options, self.host)

    def _probes(self, session: Session | None) -> Probes | None:
        return (lambda report: map(self._paced, session.probes(report))) if session else None

    def _take_acceptance(self) -> None:
        """What `linkgauge accept` has written is in force with the next cycle."""
        written = state.written(self.folder)
        if written is not None and written != self._accepted:
            accepted = state.read(self.folder)
            if accepted:
                self.memory = replace(self.memory, baseline=accepted.baseline, accepted=accepted.at)
        self._accepted = written

    def _forget_rates(self, at: float) -> None:
        """What was measured too long ago says nothing of today; nor does what a wrong clock has dated in the future."""
        lasts = self._rates_last()
        runs = [one.at for one in self.memory.measured if isinstance(one, Run)]
        if lasts is None or (runs and not at - lasts <= max(runs) <= at + CLOCK_STEP):
            self.memory = replace(self.memory, measured=())

    def _rates_last(self) -> float | None:
        every = self.config.probes.every
        return _STALE * seconds(every) if every else None

    def _round(self, report: Report, at: float, began: float) -> Round:
        return Round(
            ended=self.host.now(),
            seconds=self.monotonic() - began,
            every=self.every,
            stuck=self.stuck() + self.hang_guard.stuck,
            moved=dict(self.moved),
            rates_last=self._rates_last(),
            counts_last=_STALE * seconds(self.config.slow),
            would_drain=tuple((one.code, one.subject) for one in causes(report.findings, self.site.gate)),
        )

    def _count(self, *collected: Iterable[Record]) -> None:
        self.moved.update(
            {one.name: one.bytes for said in collected for one in said if isinstance(one, Run) and one.bytes}
        )

    def _tell(self, report: Report) -> None:
        """What is new, and what is gone, in the log."""
        before, now = _grave(self.report), _grave(report)
        for key, text in now.items():
            if key not in before:
                _log.warning("%s %s: %s", *key, text)
        for key in before.keys() - now.keys():
            _log.info("%s %s: gone", *key)
        if self.report is None or self.report.verdict != report.verdict:
            _log.info("the node is %s", report.verdict)

    def _keep(self, report: Report) -> None:
        """At once where findings have changed, else now and then."""
        late = self._saved_at is None or self.monotonic() - self._saved_at >= _SAVED
        if late or _grave(self.report).keys() != _grave(report).keys():
            self.save()


def _grave(report: Report | None) -> Mapping[tuple[str, str], str]:
    findings = report.findings if report else ()
    return {(one.code, one.subject): one.message for one in findings if one.severity != "info" and not one.silenced}
