"""Run probes in stages, one after the other, as long as the budget lasts and no job or hold claims the machine."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...models.bandwidth.repeated_rates import BATCH, FEWEST
from ...models.diagnosis.repetition import SimultaneousFlows
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...models.report import Report
from ...probes.calls.hold import held
from ...probes.host.host import Host
from ...probes.host.recorded import Recorded
from ...probes.measure.probe import Effort, Plan, Probe, Scope
from ..pipeline.source import Source
from .budget import BUDGETS, Budget
from .idle import busy_reason, claimed_by, gpus_computing, not_checked_source, not_measured
from .registry import PROBES, REPEATABLE, plan_of


class MeasurementOptions(Struct, frozen=True, kw_only=True):
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
# Copies that do not reach the rate of their equals are repeated before the other probes use up the budget.
Stage: TypeAlias = Literal["copies", "others", "slow"]  # slow: the slow flows a second time
_STAGES: Sequence[Stage] = ("copies", "others", "slow")
_FEWEST_ROUNDS = FEWEST - 1  # of a repetition: together with the first measurement they are a series
_UNDECIDED = "left out: the copies between equal ends scatter too much to show a loss of 3 %, and the budget is spent"
NOTHING = MeasurementOptions(effort="passive")
RECORDED = "Probe"  # the run name of all probes on a recorded machine


class Session(Struct):
    """One measurement and its state. The pipeline calls `probes`."""

    options: MeasurementOptions
    host: Host
    seconds: float = 0.0  # used by all rounds
    moved: float = 0.0  # bytes of all rounds
    stopped: str | None = None  # reason why no further probe runs
    overridden: str | None = None  # reason against measuring that --force overrides
    interrupted: bool = False  # by Ctrl-C
    _stages: list[Stage] = field(default_factory=lambda: [*_STAGES])  # that did not begin
    _repeated: set[str] = field(default_factory=set)  # names of the probes that repeated copies
    _replayed: set[tuple[str, ...]] = field(default_factory=set)  # calls of a recorded machine

    def probes(self, report: Report, undecided: frozenset[SimultaneousFlows] = frozenset()) -> Iterator[Source]:
        """The next probes that a report selects, stage by stage. None: nothing is left to measure."""
        if self.options.effort == "passive" or self.stopped:
            return
        if isinstance(self.host, Recorded):  # a capture holds the results of its own measurement
            yield from self._replay(report, self.host)
            return
        if len(self._stages) == len(_STAGES) and (why := busy_reason(report, self.host, self.options.owner)):
            if not self.options.force or held():
                yield self._stop(why)
                return
            self.overridden = why
            yield not_checked_source(
                "idle", Reason.OTHER, f"measured by force, although {why}: rates may be too low", "measure an idle node"
            )
        if planned := self._next(report, undecided):
            from .lock import locked  # imported only to measure

            with locked() as taken:
                if taken:
                    yield self._stop(taken)
                    return
                yield from self._within_budget(planned)
        elif undecided:
            self.stopped = "the budget is spent"
            yield not_checked_source("repetition", Reason.NOT_MEASURED, _UNDECIDED, "allow more with --budget")

    def _replay(self, report: Report, host: Recorded) -> Iterator[Source]:
        """The recorded calls of the next stage. Each is replayed once: it holds the results of all its runs."""
        while self._stages:
            stage = self._stages.pop(0)
            planned = [*self._planned(report, stage), *(self._recorded_repetitions(host) if stage == "copies" else ())]
            fresh = [one for one in planned if one.call in host.calls and one.call not in self._replayed]
            if fresh:
                self._replayed |= {one.call for one in fresh}
                yield from (Source(RECORDED, one) for one in fresh)
                return

    def _recorded_repetitions(self, host: Recorded) -> Iterator[Probe]:
        """The repetitions in a capture. Their number followed from the budget and the report of that time."""
        for name, *args in host.calls:
            if name in self._names(REPEATABLE) and len(set(args)) < len(args):
                yield Probe(name=name, args=tuple(args), kinds=frozenset(), seconds=0, bytes=0, deadline=0)

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
            if not self._budget.allows(probe, self.seconds, self.moved):
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

    def _next(self, report: Report, undecided: frozenset[SimultaneousFlows]) -> list[Probe]:
        """The probes of the next stage. Before each further stage, undecided copies are repeated while budget lasts."""
        while True:
            if repeated := self._repetition(report, undecided):
                self._repeated |= {probe.name for probe in repeated}
                return repeated
            if not self._stages:
                return []
            if planned := self._planned(report, self._stages.pop(0)):
                return planned

    def _repetition(self, report: Report, undecided: frozenset[SimultaneousFlows]) -> list[Probe]:
        if not undecided:
            return []
        later = self._planned(report, "others") if "others" in self._stages else []
        rest = self._budget.for_repetitions(self.seconds, self.moved, later)
        return repetitions(report, self._scope(_every(report)), undecided, rest, self._plans(REPEATABLE))

    def _planned(self, report: Report, stage: Stage) -> list[Probe]:
        """The probes of a stage. Of slow flows: those whose kinds of ends match and that were not repeated."""
        if stage != "slow":
            names = [name for name in PROBES if (name in REPEATABLE) == (stage == "copies")]
            scope = self._scope(_every(report))
            return [probe for plan in self._plans(names) for probe in plan(report, scope)]
        slow = slow_flows(report)
        ends = (report.topology.find(end) for several in slow for end in several)
        scope = self._scope(frozenset(device.id for device in ends if device))
        names = [name for name in PROBES if name not in self._repeated]
        kinds = {tuple(map(report.topology.kind, several)) for several in slow}
        return [probe for plan in self._plans(names) for probe in plan(report, scope) if probe.kinds & kinds]

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

    def _names(self, among: Iterable[str]) -> list[str]:
        wanted = self.options.only
        names = [name for name in among if name not in self.options.skip and (not wanted or name in wanted)]
        if not isinstance(self.host, Recorded):
            return names
        # Only probes with results in the capture. The modules of the others are slow to import.
        recorded = {name for name, *_ in self.host.calls}
        return [name for name in names if name in recorded]

    def _plans(self, among: Iterable[str]) -> Iterator[Plan]:
        return map(plan_of, self._names(among))

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

        return Source(probe.name, source, probes_left=left)


def _every(report: Report) -> frozenset[str]:
    return frozenset(device.id for device in report.topology.devices)


def repetitions(
    report: Report, scope: Scope, undecided: frozenset[SimultaneousFlows], rest: Budget, plans: Iterable[Plan]
) -> list[Probe]:
    """The next measurements of the undecided flows: a batch, if it fits into the rest of the budget."""
    several = [*plans] if undecided else []
    for rounds in range(BATCH, _FEWEST_ROUNDS - 1, -1):
        wanted = replace(scope, again=undecided, rounds=rounds)
        probes = [probe for plan in several for probe in plan(report, wanted)]
        if rest.covers(sum(probe.seconds for probe in probes), sum(probe.bytes for probe in probes)):
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
