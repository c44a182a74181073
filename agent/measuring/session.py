"""Measuring: which probes run, one after the other, as long as nobody else wants the machine."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...models.report import Report
from ...probes.calls.hold import held
from ...probes.host.host import Host
from ...probes.host.recorded import Recorded
from ...probes.measure.probe import Effort, Plan, Probe, Scope
from ..pipeline.source import Source
from .budget import BUDGETS, PROBES, Budget, plan_of
from .idle import busy_because, computing, given_away, not_measured, said_once
from .lock import locked


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions:
    """What the caller wants measured, and what he vouches for."""

    effort: Effort = "quick"
    only: frozenset[str] = frozenset()  # names of probes; none: all
    skip: frozenset[str] = frozenset()
    budget: Budget | None = None  # None: what the effort allows
    force: bool = False  # the machine is measured though it is busy
    owner: str | None = None  # "slurm:4711": the job that the caller is, or prepares
    mounts: tuple[str, ...] = ()
    write_to: str | None = None
    peers: tuple[str, ...] = ()  # other machines at which tools of the same kind wait


_LOOK = 5.0  # seconds from one look whether a process computes on a GPU to the next: jobs may come without a scheduler
NOTHING = MeasurementOptions(effort="passive")
RECORDED = "Probe"  # the name of all probes of a recorded machine in its runs


@dataclass(slots=True)
class Session:
    """How one measuring goes. Its `probes` are for the pipeline."""

    options: MeasurementOptions
    host: Host
    rounds: int = 0
    stopped: str | None = None  # why nothing more is measured
    overridden: str | None = None  # why nothing should have been
    interrupted: bool = False  # by Ctrl-C

    def probes(self, report: Report) -> Iterator[Source]:
        """What a report makes worth measuring: at first everything, then once more what was slow."""
        if self.options.effort == "passive" or self.stopped:
            return
        self.rounds += 1
        if isinstance(self.host, Recorded):  # it says what was measured then
            then = (probe for probe in self._planned(report) if (probe.name, *probe.args) in self.host.calls)
            yield from (Source(RECORDED, probe) for probe in then)
            return
        if self.rounds == 1 and (why := busy_because(report, self.host, self.options.owner)):
            if not self.options.force or held():
                yield self._stop(why)
                return
            self.overridden = why
            yield said_once(
                "idle", Reason.OTHER, f"measured by force, although {why}: rates may be too low", "measure an idle node"
            )
        planned = self._planned(report)
        if not planned:
            return
        with locked() as taken:
            if taken:
                yield self._stop(taken)
                return
            yield from self._while_free(planned)

    def _while_free(self, planned: list[Probe]) -> Iterator[Source]:
        """The probes, as long as budget and peace last; what is left out is said."""
        budget = self.options.budget or BUDGETS[self.options.effort]
        began, moved, late, ran = time.monotonic(), 0.0, dict[str, None](), set[str]()
        looked = began
        for place, probe in enumerate(planned):
            why = self.stopped or given_away(self.host, self.options.owner)
            if not why and time.monotonic() - looked >= _LOOK:
                why, looked = computing(self.host), time.monotonic()
            if why and why != self.overridden:
                yield self._stop(why)
                return
            if not budget.affords(probe, time.monotonic() - began, moved):
                late[probe.name] = None
                continue
            moved += probe.bytes
            ran.add(probe.name)
            yield self._watched(probe, len(planned) - place - 1)
        yield from _too_dear(late, ran, budget)

    def _planned(self, report: Report) -> list[Probe]:
        """All that is worth measuring; after the first round what touches the flows that were slow."""
        slow = [] if self.rounds == 1 else slow_flows(report)
        found = (report.topology.find(end) for ends in slow for end in ends)
        ends = (device.id for device in (report.topology.devices if self.rounds == 1 else found) if device)
        options = self.options
        scope = Scope(
            effort=options.effort,
            ends=frozenset(ends),
            mounts=options.mounts,
            write_to=options.write_to,
            owned=options.owner is not None,
            peers=options.peers,
        )
        probes = [probe for plan in self._plans() for probe in plan(report, scope)]
        kinds = {tuple(map(report.topology.kind, ends)) for ends in slow}
        return [probe for probe in probes if self.rounds == 1 or probe.kinds & kinds]

    def _plans(self) -> Iterator[Plan]:
        for name in PROBES:
            if name not in self.options.skip and (not self.options.only or name in self.options.only):
                yield plan_of(name)

    def _stop(self, why: str) -> Source:
        self.stopped = why
        return not_measured(why)

    def _watched(self, probe: Probe, left: int) -> Source:
        """The probe; Ctrl-C ends it and all that would follow, and what was found is told. `left` is for people."""

        def source(host: Host) -> Iterator[Record]:
            try:
                yield from probe(host)
            except KeyboardInterrupt:
                self.interrupted, self.stopped = True, "interrupted"
                yield NotChecked(what=probe.name, subject="node", reason=Reason.NOT_MEASURED, detail="interrupted")

        return Source(probe.name, source, left=left)


def slow_flows(report: Report) -> list[tuple[str, ...]]:
    """The ends of the flows that were found slow; a finding is about one of them, or explains several."""
    said = [one for one in report.findings if one.kind == "measurement"]
    names = {name for one in said for name in (one.subject, *(flow.partition(":")[2] for flow in one.explains))}
    return [level.ends for level in report.levels if level.flow.subject in names]


def _too_dear(names: Iterable[str], ran: Collection[str], budget: Budget) -> Iterator[Source]:
    """`ran`: those of which a part was measured."""
    for name in names:
        why = f"left out: {'the rest of it' if name in ran else 'it'} does not fit into {budget}"
        yield said_once(name, Reason.NOT_MEASURED, why, f"allow more with --budget, or --only {name}")
