"""The service: read the node every few seconds, evaluate it, and serve the result to Prometheus."""

from __future__ import annotations

import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from msgspec.structs import replace

from ...exporters.metrics.sample import CycleInfo
from ...models.diagnosis.ignored import unused
from ...models.facts.records import Observation, Record, Run
from ...models.report import Report
from ...models.site.gate import causes
from ...models.site.schema import Site
from ...probes.host.guarded import SIGNS
from ...probes.host.host import Host, Unreadable
from ...probes.serials import read_identities
from ..gate.decision import disabled_by
from ..measuring.budget import budget_of
from ..measuring.session import MeasurementOptions, Session
from ..pipeline.cycle import Memory, cycle
from ..pipeline.diagnose import Probes
from ..pipeline.hang_guard import HangGuard
from ..pipeline.past import recent_rates
from ..pipeline.registry import SOURCES
from ..pipeline.source import Interval, Read, Source
from ..state import acceptance, inventory_file, status_file
from ..state.state_file import CLOCK_STEP
from ..web.pages import Pages
from . import checkpoint
from .config import Config, seconds
from .job_sources import JobSources
from .job_window import updated_peaks
from .push import Publisher
from .recorder import Recorder
from .redfish_source import RedfishSource
from .schedule import Intervals, LastRun, due, has_run, lists_other_gpus, updated_runs
from .state import service_state

_SAVE_INTERVAL = 300.0  # seconds between two checkpoints while the findings do not change
_STALE = 2  # intervals after which an observation is no longer reported
_TRAFFIC_DEADLINE = 5.0  # seconds; the child of the driver has these values in memory
_log = logging.getLogger("linkgauge")


@dataclass
class Daemon:
    """The state of a service between two cycles. `pause` is called after every step, so that CPU bursts stay short."""

    host: Host
    config: Config
    site: Site
    pages: Pages
    folder: str  # for state files
    memory: Memory = field(default_factory=Memory)
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[], None] = lambda: None
    forget: Callable[[], None] = lambda: None  # clears cached symbolic links: devices may have come or gone
    stuck: Callable[[], int] = lambda: 0
    publishers: tuple[Publisher, ...] = ()  # send the report to other systems
    traffic: Read = lambda host: ()  # bytes that jobs sent through ports since the last call
    rng: random.Random = field(default_factory=random.Random)
    hang_guard: HangGuard = field(default_factory=HangGuard)
    recorder: Recorder = field(default_factory=Recorder)
    last_runs: dict[str, LastRun] = field(default_factory=dict)
    moved: Counter[str] = field(default_factory=Counter)
    report: Report | None = None
    busy: bool = False
    began: float = 0.0  # monotonic time at which the last cycle started
    # Job window -> port -> bytes per second, as in the status file.
    peaks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    _signs: tuple[object, ...] = ()
    jobs: JobSources = field(default_factory=JobSources)
    redfish: RedfishSource = field(default_factory=RedfishSource)
    _probe_at: float | None = None
    _saved_at: float | None = None
    _accepted: int | None = None
    _write_errors: dict[str, str | None] = field(default_factory=dict)  # path -> why it could not be written

    def cycle(self) -> Report:
        """Collect from the sources that are due, evaluate, and publish the report."""
        began, at = self.monotonic(), self.host.now()
        self.began = began
        before = self._signs
        self.hang_guard.collect((Source("signs", self._read_signs),), self.host)
        changed = bool(before) and before != self._signs
        intervals = Intervals(self.every, seconds(self.config.slow), seconds(self.config.discovery))
        due_sources = due(SOURCES, self.last_runs, intervals, began, changed)
        further = self.jobs.sources(self.config)
        if any(source.interval is Interval.DISCOVERY for source in due_sources):
            self.forget()
            further.append(Source("identities", read_identities))
        session = self._session(began)
        sources = [*further, *map(self._paced, due_sources), Source("traffic", self.read_traffic)]
        sources += (*self.recorder.sources(self.folder, self.memory, at, began, self.pause), *self.redfish.sources())
        self._forget_rates(at)
        self._take_acceptance()
        known = self.memory
        self.memory, report = cycle(
            self.host, sources, self.site, known, self._probes(session), self.pause, self.hang_guard.collect
        )
        self._write_inventory(known)
        fresh = {source.name: self.memory.collected[source.name] for source in due_sources}
        ran = {name: records for name, records in fresh.items() if has_run(records, at)}
        again = lists_other_gpus(known.collected, self.memory.collected)
        self.last_runs = updated_runs(self.last_runs, ran, began, again)
        self._count(*ran.values(), self.memory.measured if session else ())
        self.busy = any(one.quantity == "processes" and one.value for one in report.observations)
        self._log_changes(report)
        ended = self._cycle_info(report, at, began)
        self.pages.put(report, ended, disabled_by(self.site.gate.disable_file))
        self._write_textfile()
        self._write_status(report)
        for publisher in self.publishers:
            publisher.publish(report, self.site, ended)
        self._log_once(*self.recorder.add(self.folder, report, at, self.memory))
        self._save_if_due(report)
        self.report = report
        return report

    @property
    def every(self) -> float:
        """Current seconds between two cycles."""
        return seconds(self.config.cycle_busy if self.busy else self.config.cycle)

    def save(self) -> None:
        """Write the checkpoint. A failure is logged once."""
        self._saved_at = self.monotonic()
        refused = checkpoint.save(self.folder, self.memory, self.host.now())
        self._log_once(self.folder, refused and f"{refused}: a restart will lose the current state")

    def _write_textfile(self) -> None:
        """Write the metrics for node_exporter's textfile collector, if the configuration names a file."""
        path = self.config.textfile
        if path is None:
            return
        from ..state.atomic_write import write_atomically

        try:
            write_atomically(os.path.abspath(path), self.pages.read("metrics"))
        except OSError as refused:
            self._log_once(path, f"{path}: {refused.strerror}: not written")
        else:
            self._log_once(path, None)

    def _write_status(self, report: Report) -> None:
        """Write the status file, which gates and job windows read."""
        path = os.path.join(self.folder, status_file.FILE)
        self.peaks = updated_peaks(self.folder, self.peaks, self.memory.collected)
        try:
            now = self.host.now()
            state = service_state(report, self.memory, self.last_runs, self._probe_at, now, self.monotonic())
            status_file.write(self.folder, report, now, self.every, self.peaks, state)
        except OSError as refused:
            self._log_once(path, f"{path}: {refused.strerror}: gates cannot read the state of this node")
        else:
            self._log_once(path, None)

    def _write_inventory(self, before: Memory) -> None:
        """Write the inventory file if a device came, went or changed, or if the file was deleted."""
        reference, last, path = self.memory.inventory, self.memory.last, os.path.join(self.folder, inventory_file.FILE)
        same = reference is before.inventory and last is before.last and os.path.exists(path)
        if reference is None or last is None or same:
            return
        try:
            inventory_file.write(self.folder, reference, last)
        except OSError as refused:
            self._log_once(path, f"{path}: {refused.strerror}: a restart forgets which devices were there")
        else:
            self._log_once(path, None)

    def _log_once(self, path: str, wrong: str | None) -> None:
        """Log a failure once, not in every cycle, and log when it ends."""
        before = self._write_errors.get(path)
        if wrong and wrong != before:
            _log.warning(wrong)
        elif before and not wrong:
            _log.info("%s: written again", path)
        self._write_errors[path] = wrong

    def _read_signs(self, host: Host) -> Iterable[Record]:
        """Read the names of devices. Other names than before mean that a device was plugged, bound or lost."""

        def names(path: str) -> tuple[str, ...]:
            with suppress(Unreadable):
                return tuple(host.list(path))
            return ()

        self._signs = tuple(map(names, SIGNS))
        return ()

    def _paced(self, source: Source) -> Source:
        def paced(host: Host) -> Iterator[Record]:
            for record in source.read(host):
                yield record
                self.pause()
            self.pause()

        return replace(source, read=paced)

    def read_traffic(self, host: Host) -> Iterable[Record]:
        """A source: the bytes that jobs sent through ports and NVLinks since the last call."""
        yield from self.traffic(host)
        if self.busy:
            records = host.call("nvml_traffic", f"{_STALE * self.every:g}", deadline=_TRAFFIC_DEADLINE)
            yield from (one for one in records if isinstance(one, Observation))  # the GPU sources report absent ones

    def _session(self, now: float) -> Session | None:
        """The measurement that is due, or None. The first one starts at a random time within the first interval."""
        probing = self.config.probes
        if probing.every is None:
            self._probe_at = None
            return None
        if self._probe_at is None:
            self._probe_at = now + self.rng.uniform(0, seconds(probing.every))
        if now < self._probe_at:
            return None
        self._probe_at = now + seconds(probing.every) + self.rng.uniform(0, seconds(probing.jitter))
        budget = budget_of(probing.budget, probing.level) if probing.budget else None
        options = MeasurementOptions(
            effort=probing.level, budget=budget, only=frozenset(probing.only), skip=frozenset(probing.skip)
        )
        return Session(options, self.host)

    def _probes(self, session: Session | None) -> Probes | None:
        return (lambda *known: map(self._paced, session.probes(*known))) if session else None

    def _take_acceptance(self) -> None:
        """Read the acceptance file again if `linkgauge accept` has written it since the last cycle."""
        modified_at = acceptance.modified_at(self.folder)
        if modified_at is not None and modified_at != self._accepted:
            accepted = acceptance.read(self.folder)
            if accepted:
                self.memory = checkpoint.with_acceptance(self.memory, accepted)
        self._accepted = modified_at
        self.memory = checkpoint.without_future_acceptance(self.memory, self.host.now())

    def _forget_rates(self, at: float) -> None:
        """Show no measured rates that are too old, or that a wrong clock has dated in the future.

        Those that are too old stay for the comparison with later measurements.
        """
        lifetime = self._rate_lifetime()
        runs = [one.at for one in self.memory.measured if isinstance(one, Run)]
        fresh = lifetime is not None and (not runs or at - lifetime <= max(runs) <= at + CLOCK_STEP)
        if self.memory.measured and not fresh:
            rates = recent_rates(self.memory.rates, self.memory.measured, at)
            self.memory = replace(self.memory, measured=(), rates=rates)

    def _rate_lifetime(self) -> float | None:
        every = self.config.probes.every
        return _STALE * seconds(every) if every else None

    def _cycle_info(self, report: Report, at: float, began: float) -> CycleInfo:
        return CycleInfo(
            ended=self.host.now(),
            seconds=self.monotonic() - began,
            every=self.every,
            stuck=self.stuck() + self.hang_guard.stuck,
            moved=dict(self.moved),
            rate_lifetime=self._rate_lifetime(),
            count_lifetime=_STALE * seconds(self.config.slow),
            would_drain=tuple((one.code, one.subject) for one in causes(report.findings, self.site.gate)),
        )

    def _count(self, *collected: Iterable[Record]) -> None:
        self.moved.update(
            {one.name: one.bytes for records in collected for one in records if isinstance(one, Run) and one.bytes}
        )

    def _log_changes(self, report: Report) -> None:
        """Log findings that are new and findings that are gone."""
        before, now = _active_findings(self.report), _active_findings(report)
        for key, text in now.items():
            if key not in before:
                _log.warning("%s %s: %s", *key, text)
        for key in before.keys() - now.keys():
            _log.info("%s %s: gone", *key)
        for entry in unused(self.memory.ignored, self.host.now()):
            self._log_once(entry, f"[ignore] {entry}: matched no finding for 30 days: delete the entry")
        if self.report is None or self.report.verdict != report.verdict:
            _log.info("the node is %s", report.verdict)

    def _save_if_due(self, report: Report) -> None:
        """Write the checkpoint at once if the findings changed, else at intervals."""
        late = self._saved_at is None or self.monotonic() - self._saved_at >= _SAVE_INTERVAL
        if late or _active_findings(self.report).keys() != _active_findings(report).keys():
            self.save()


def _active_findings(report: Report | None) -> Mapping[tuple[str, str], str]:
    findings = report.findings if report else ()
    return {(one.code, one.subject): one.message for one in findings if one.severity != "info" and not one.silenced}
