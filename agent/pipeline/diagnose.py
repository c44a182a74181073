"""The whole program: `diagnose` once, `cycle` with memory. Live, recorded and dumps differ in their readers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from ...models.diagnosis.hysteresis import Histories, settle
from ...models.evaluate import evaluate
from ...models.facts.records import Flow, Observation, Record
from ...models.inventory.assemble import assemble
from ...models.inventory.snapshot import Snapshot
from ...models.report import Context, Report
from ...models.site.schema import Site
from ...probes.host.host import Host
from .hang_guard import collect_all
from .run_source import ask, collect_each
from .source import Source

Probes: TypeAlias = Callable[[Report], Iterable[Source]]

_MINUTE, _HOUR = 60.0, 3600.0
_LONGEST = 48 * _HOUR  # a daemon must not grow with its age


@dataclass(frozen=True, slots=True)
class Memory:
    """All that a daemon remembers: what each source said last, which findings stand, and earlier observations."""

    collected: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)
    measured: tuple[Record, ...] = ()  # by probes, when they ran last
    standing: Histories = field(default_factory=dict)
    past: tuple[Observation, ...] = ()
    baseline: tuple[Observation, ...] = ()
    accepted: float | None = None  # when the node was marked as good, in seconds since 1970


def look(host: Host, readers: Iterable[Source], site: Site) -> Snapshot:
    """What the readers make known of a node, not judged."""
    return assemble(collect_all(readers, host), site, host.now(), origin=host.origin)


def diagnose(
    host: Host,
    readers: Iterable[Source],
    probes: Probes,
    site: Site,
    baseline: Iterable[Observation] = (),
    context: Context = "host",
    accepted: float | None = None,
) -> Report:
    """One report. `probes` says from a report what to measure next; what was slow is measured once more.

    `context` says whose limits are met: those of a job, or of nobody in particular. `accepted` is when the node was
    marked as good, `baseline` what was observed then.
    """
    return examine(host, readers, probes, site, baseline, context, accepted)[1]


def examine(
    host: Host,
    readers: Iterable[Source],
    probes: Probes,
    site: Site,
    baseline: Iterable[Observation] = (),
    context: Context = "host",
    accepted: float | None = None,
) -> tuple[Snapshot, Report]:
    """As `diagnose`, with the case that was judged."""
    read = collect_all(readers, host)
    known = tuple(baseline)

    def evaluated(measured: Sequence[Record]) -> tuple[Snapshot, Report]:
        snapshot = assemble(
            [*read, *measured], site, host.now(), baseline=known, origin=host.origin, context=context, accepted=accepted
        )
        return snapshot, evaluate(snapshot)

    _, snapshot, report = _confirmed(host, probes, evaluated)
    return snapshot, report


def _confirmed(
    host: Host, probes: Probes, evaluated: Callable[[Sequence[Record]], tuple[Snapshot, Report]]
) -> tuple[list[Record], Snapshot, Report]:
    """What probes measured: at first what a report without it makes worth measuring, then once more what was slow."""
    measured: list[Record] = []
    snapshot, report = evaluated(measured)
    for _ in range(2):
        further = [one for probe in probes(report) for one in ask(probe, host)]
        if not further:
            break
        measured += further
        snapshot, report = evaluated(measured)
    return measured, snapshot, report


def cycle(
    host: Host,
    due: Iterable[Source],
    site: Site,
    memory: Memory,
    probes: Probes | None = None,
    pause: Callable[[], None] = lambda: None,
    ask_them: Callable[[Iterable[Source], Host], Mapping[str, tuple[Record, ...]]] = collect_each,
) -> tuple[Memory, Report]:
    """One round of the daemon: what is not due is remembered, and ages. `pause` divides its work into short bursts.

    `probes` as in `diagnose`, where it is time to measure: what was measured before is forgotten then.
    """
    fresh = ask_them(due, host)
    collected = {**memory.collected, **fresh}
    kept = () if probes else memory.measured

    def evaluated(measured: Sequence[Record]) -> tuple[Snapshot, Report]:
        said = chain(*collected.values(), kept, measured)
        snapshot = assemble(said, site, host.now(), memory.past, memory.baseline, host.origin, accepted=memory.accepted)
        pause()
        return snapshot, evaluate(snapshot)

    measured, _, report = _confirmed(host, probes or (lambda report: ()), evaluated)
    pause()
    standing, shown = settle(memory.standing, report, memory.accepted)
    past = thin((*memory.past, *chain(*fresh.values())), host.now())
    return replace(memory, collected=collected, measured=(*kept, *measured), standing=standing, past=past), shown


def thin(said: Iterable[Record], now: float) -> tuple[Observation, ...]:
    """What rules need of earlier observations: of the last hour the first of each thing in each minute, of the two days
    before that in each hour; and of a number that stays as it is, the first and the last time.

    A daemon must not grow with its age; and what a clock that was wrong has dated in the future is forgotten.
    """
    series: dict[tuple[Flow | str, str], list[Observation]] = {}
    for one in said:
        if isinstance(one, Observation) and now - _LONGEST <= one.at <= now:
            series.setdefault((one.about, one.quantity), []).append(one)
    return tuple(one for several in series.values() for one in _thinned(several, now))


def _thinned(several: list[Observation], now: float) -> Iterable[Observation]:
    """Of one thing."""
    kept: list[Observation] = []
    for one in sorted(several, key=lambda one: one.at):
        if kept[1:] and kept[-2].value == kept[-1].value == one.value:
            kept[-1] = one
        elif not kept or _span(kept[-1], now) != _span(one, now):
            kept.append(one)
    return kept


def _span(one: Observation, now: float) -> tuple[float, int]:
    """The minute or the hour that it fell into."""
    step = _MINUTE if one.at > now - _HOUR else _HOUR
    return step, int(one.at // step)
