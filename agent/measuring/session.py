"""Run probes one after the other, as long as the budget lasts and no job or hold claims the machine."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from ...models.bandwidth.repeated_rates import BATCH
from ...models.diagnosis.repetition import Run
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...models.report import Report
from ...probes.calls.hold import held
from ...probes.host.host import Host
from ...probes.host.recorded import Recorded
from ...probes.measure.probe import Effort, Plan, Probe, Scope
from ..pipeline.source import Source
from .budget import BUDGETS, PROBES, REPEATABLE, Budget, plan_of
from .idle import busy_reason, claimed_by, gpus_computing, not_checked_source, not_measured
from .lock import locked


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions:
    """What the caller wants to measure, and which checks the caller overrides."""

    effort: Effort = "quick"
    only: frozenset[str] = frozenset()  # names of probes; none: all
    skip: frozenset[str] = frozenset()
    budget: Budget | None = None  # None: the budget of the effort
    force: bool = False  # measure although the machine is busy
    owner: str | None = None  # "slurm:4711": the caller's own job
    mounts: tuple[str, ...] = ()
    write_to: str | None = None
    peers: tuple[str, ...] = ()  # other machines, on which the server of the same tool runs


_LOOK = 5.0  # seconds between two checks for GPU processes: jobs can start without a scheduler
_ROUNDS = 2  # of flows without equals, and of all flows of a recorded machine
_UNDECIDED = "left out: the copies between equal ends scatter too much to show a loss of 3 %, and the budget is spent"
NOTHING = MeasurementOptions(effort="passive")
RECORDED = "Probe"  # the run name of all probes on a recorded machine


@dataclass(slots=True)
class Session:
    """One measurement and its state. The pipeline calls `probes`."""

    options: MeasurementOptions
    host: Host
    rounds: int = 0
    seconds: float = 0.0  # used by all rounds
    moved: float = 0.0  # bytes of all rounds
    stopped: str | None = None  # reason why no further probe runs
    overridden: str | None = None  # reason against measuring that --force overrides
    interrupted: bool = False  # by Ctrl-C

    def probes(self, report: Report, undecided: frozenset[Run] = frozenset()) -> Iterator[Source]:
        """The probes that a report selects: in the first round all, later those of the slow and the undecided flows."""
        if self.options.effort == "passive" or self.stopped:
            return
        self.rounds += 1
        if isinstance(self.host, Recorded):  # a capture holds the results of its own measurement
            planned = self._next(report, undecided) if self.rounds <= _ROUNDS else []
            then = (probe for probe in planned if (probe.name, *probe.args) in self.host.calls)
            yield from (Source(RECORDED, probe) for probe in then)
            return
        if self.rounds == 1 and (why := busy_reason(report, self.host, self.options.owner)):
            if not self.options.force or held():
                yield self._stop(why)
                return
            self.overridden = why
            yield not_checked_source(
                "idle", Reason.OTHER, f"measured by force, although {why}: rates may be too low", "measure an idle node"
            )
        planned = self._next(report, undecided)
        if undecided and not any(probe.name in REPEATABLE for probe in planned):
            yield not_checked_source("repetition", Reason.NOT_MEASURED, _UNDECIDED, "allow more with --budget")
        if not planned:
            return
        with locked() as taken:
            if taken:
                yield self._stop(taken)
                return
            yield from self._within_budget(planned)

    def _within_budget(self, planned: list[Probe]) -> Iterator[Source]:
        """The probes while budget lasts and the machine is free. Probes that do not fit are reported."""
        began, before = time.monotonic(), self.seconds
        left_out, ran = dict[str, None](), set[str]()
        last_check = began
        for place, probe in enumerate(planned):
            why = self.stopped or claimed_by(self.host, self.options.owner)
            if not why and time.monotonic() - last_check >= _LOOK:
                why, last_check = gpus_computing(self.host), time.monotonic()
            if why and why != self.overridden:
                yield self._stop(why)
                return
            self.seconds = before + time.monotonic() - began
            if not self._budget.affords(probe, self.seconds, self.moved):
                left_out[probe.name] = None
                continue
            self.moved += probe.bytes
            ran.add(probe.name)
            yield self._interruptible(probe, len(planned) - place - 1)
        self.seconds = before + time.monotonic() - began
        yield from _over_budget(left_out, ran, self._budget)

    @property
    def _budget(self) -> Budget:
        return self.options.budget or BUDGETS[self.options.effort]

    def _next(self, report: Report, undecided: frozenset[Run]) -> list[Probe]:
        """The probes of this round: copies between equal ends in turns, and other slow flows a second time."""
        repeated = self._repeated(report, undecided)
        names = {probe.name for probe in repeated}
        planned = self._planned(report) if self.rounds <= _ROUNDS else []
        return [*repeated, *(probe for probe in planned if probe.name not in names)]

    def _repeated(self, report: Report, undecided: frozenset[Run]) -> list[Probe]:
        rest = Budget(self._budget.seconds - self.seconds, self._budget.bytes - self.moved)
        every = frozenset(device.id for device in report.topology.devices)
        return repetitions(report, self._scope(every), undecided, rest, self._plans(REPEATABLE))

    def _planned(self, report: Report) -> list[Probe]:
        """The planned probes: in the first round all, later those whose kinds of ends match a slow flow."""
        slow = [] if self.rounds == 1 else slow_flows(report)
        found = (report.topology.find(end) for ends in slow for end in ends)
        ends = (device.id for device in (report.topology.devices if self.rounds == 1 else found) if device)
        scope = self._scope(frozenset(ends))
        probes = [probe for plan in self._plans() for probe in plan(report, scope)]
        kinds = {tuple(map(report.topology.kind, ends)) for ends in slow}
        return [probe for probe in probes if self.rounds == 1 or probe.kinds & kinds]

    def _scope(self, ends: frozenset[str]) -> Scope:
        options = self.options
        return Scope(
            effort=options.effort,
            ends=ends,
            mounts=options.mounts,
            write_to=options.write_to,
            owned=options.owner is not None,
            peers=options.peers,
        )

    def _plans(self, among: Iterable[str] = PROBES) -> Iterator[Plan]:
        for name in among:
            if name not in self.options.skip and (not self.options.only or name in self.options.only):
                yield plan_of(name)

    def _stop(self, why: str) -> Source:
        self.stopped = why
        return not_measured(why)

    def _interruptible(self, probe: Probe, left: int) -> Source:
        """The probe as a source. Ctrl-C ends it and all further probes; results so far are kept."""

        def source(host: Host) -> Iterator[Record]:
            try:
                yield from probe(host)
            except KeyboardInterrupt:
                self.interrupted, self.stopped = True, "interrupted"
                yield NotChecked(what=probe.name, subject="node", reason=Reason.NOT_MEASURED, detail="interrupted")

        return Source(probe.name, source, left=left)


def repetitions(
    report: Report, scope: Scope, undecided: frozenset[Run], rest: Budget, plans: Iterable[Plan]
) -> list[Probe]:
    """The next measurements of the undecided flows: as many rounds of a batch as fit into the rest of the budget."""
    several = [*plans] if undecided else []
    for rounds in range(BATCH, 0, -1):
        wanted = replace(scope, again=undecided, rounds=rounds)
        probes = [probe for plan in several for probe in plan(report, wanted)]
        if rest.holds(sum(probe.seconds for probe in probes), sum(probe.bytes for probe in probes)):
            return probes
    return []


def slow_flows(report: Report) -> list[tuple[str, ...]]:
    """The ends of each slow flow: those that a finding is about or explains."""
    findings = [one for one in report.findings if one.kind == "measurement"]
    names = {name for one in findings for name in (one.subject, *(flow.partition(":")[2] for flow in one.explains))}
    return [level.ends for level in report.levels if level.flow.subject in names]


def _over_budget(names: Iterable[str], ran: Collection[str], budget: Budget) -> Iterator[Source]:
    """Sources that report what did not fit. `ran`: names of probes that ran in part."""
    for name in names:
        why = f"left out: {'the rest of it' if name in ran else 'it'} does not fit into the budget of {budget}"
        yield not_checked_source(name, Reason.NOT_MEASURED, why, f"allow more with --budget, or --only {name}")
