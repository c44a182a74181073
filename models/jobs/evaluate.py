"""From the log of a job to a report: rates of its communicators, slow parts of the cluster, and late ranks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..diagnosis.ignored import silenced
from ..diagnosis.remedies import with_remedies
from ..diagnosis.verdict import verdict
from ..facts.reason import Reason
from ..facts.records import NotChecked
from ..facts.units import MIB, as_utc
from ..inventory.assemble import assemble
from ..report import Finding, Job, JobRate, Profile, Report
from ..site.schema import Site
from ..training.cluster import Cluster
from .expected import Rate, implausible, judged, rate_of, shape_of
from .findings import late_finding, localized_finding, uniform_finding
from .late import Late, Shown, late_host, late_unit
from .localization import cleared_by, localize, parts_of
from .log import Communicator, JobLog, Kind
from .placement import Place, Row, Unit, places_of, units_of
from .rates import array_size
from .timing import Table, table_of, taken_of
from .waiting import Cause, causes_of

_COLLECTIVES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"})
_LEAST = 16 * MIB  # bytes of an array; of smaller ones latency decides, not bandwidth
_HEALTHY = 0.9  # of the typical rate: slower communicators clear no part
_UNIFORM = 0.5  # share of equal communicators from which on all of them are below the machine type's rate
_MOST_GAPS = 20  # communicators that are named as not judged


class Measured(Struct, frozen=True):
    """A communicator, where its ranks run, and the times of its collectives."""

    communicator: Communicator
    units: Mapping[int, Unit]
    places: tuple[Place, ...]
    tables: Mapping[Kind, Table]

    @property
    def operations(self) -> float:
        """The number of collectives of one rank."""
        members = self.communicator.members.values()
        return sum(one.series[kind].count for one in members for kind in self.tables if kind in one.series) / len(
            members
        )


def evaluate_job(
    log: JobLog, now: float, rows: Sequence[Row] = (), cluster: Cluster | None = None, site: Site | None = None
) -> Report:
    """The report of a job. `rows`: the user's table of ranks. `cluster`: its machines, if their type is known."""
    places = places_of(log, rows)
    measured = [_measured(one, places) for one in log.communicators.values()]
    wrong = implausible(_rates(measured), cluster)
    measured = [replace(one, tables={}) if one.communicator.id in wrong else one for one in measured]
    rates = judged(_rates(measured), cluster, log.averaged)
    found = [*_slow_links(measured, rates), *_late_ranks(measured, rates, log.averaged)]
    gaps = (*_problems(log), *_not_judged(measured, wrong), *_without_machine(rates, cluster))
    empty = assemble((), site or Site(), now, origin="dumps")
    named = [replace(one, device=one.subject, silenced=silenced(empty, one)) for one in found]
    findings = tuple(with_remedies(empty, sorted(named, key=lambda one: (one.code, one.confidence, one.subject))))
    checks = {
        "bandwidth-low": any(one.judged for one in rates),
        "node-slow": any(one.tables for one in measured),
    }
    return Report(
        node=None,
        taken_at=as_utc(now),
        source="dumps",
        context="dumps",
        profile=Profile(cluster.name, "--machine") if cluster else None,
        verdict=verdict(findings, checks, "dumps", unread=gaps),
        findings=findings,
        not_checked=gaps,
        checks=checks,
        cost="unknown" if findings else "none",
        job=_job(log, rates, places),
    )


def _measured(one: Communicator, places: Mapping[Unit, Place]) -> Measured:
    units = units_of(one)
    kinds = sorted({kind for member in one.members.values() for kind in member.series if kind.op in _COLLECTIVES})
    tables = {kind: table for kind in kinds if not one.inconsistent and (table := table_of(one, kind)) is not None}
    return Measured(one, units, tuple(places[unit] for unit in units.values()), tables)


def _rates(measured: Sequence[Measured]) -> Iterator[Rate]:
    for one in measured:
        shape = shape_of(one.places, one.communicator.n_ranks) if one.tables else None
        for kind, table in one.tables.items():
            if shape and array_size(kind.op, shape.ranks, kind.size) >= _LEAST:
                yield rate_of(one.communicator, kind, shape, taken_of(one.communicator, kind, table))


def _uniform(rates: Sequence[Rate]) -> Sequence[Rate]:
    """Rates below that of the machine type, if most equal communicators are: nothing shows which link is slow."""
    equal = Counter((one.kind, one.shape) for one in rates)
    below = Counter((one.kind, one.shape) for one in rates if _below_model(one))
    return [one for one in rates if _below_model(one) and below[key := (one.kind, one.shape)] > _UNIFORM * equal[key]]


def _below_model(one: Rate) -> bool:
    return one.missed is not None and one.missed.basis != "kin"


def _slow_links(measured: Sequence[Measured], rates: Sequence[Rate]) -> Iterator[Finding]:
    """One finding for each part of the cluster that explains slow communicators, and for what no part explains."""
    parts = {one.communicator.id: parts_of(one.places) for one in measured if one.tables}
    uniform = _uniform(rates)
    slow = defaultdict[str, list[Rate]](list)
    for one in rates:
        if one.missed is not None and one not in uniform:
            slow[one.communicator.id].append(one)
    uncertain = {one.communicator.id for one in rates if not _is_healthy(one)}
    healthy = [cleared_by(parts[name]) for name in {one.communicator.id for one in rates} - uncertain]
    also = {one.communicator.id: parts[one.communicator.id] for one in uniform if one.communicator.id not in slow}
    explained = set[str]()
    for located in localize({name: parts[name] for name in slow}, healthy, also):
        explained |= located.communicators
        yield localized_finding(
            located, [rate for name in sorted(located.communicators) for rate in slow.get(name, ())]
        )
    rest = defaultdict[object, list[Rate]](list)
    for one in uniform:
        if one.communicator.id not in explained:
            rest[one.kind, one.shape].append(one)
    for several in rest.values():
        yield uniform_finding(several)


def _is_healthy(one: Rate) -> bool:
    """Whether the rate shows that all its links are well. Missing ranks can only make a rate lower than it was."""
    kin = next((each for each in one.expected if each.basis == "kin"), None)
    model = next((each for each in one.expected if each.basis != "kin"), None)
    above = kin is None or one.observed >= _HEALTHY * kin.typical
    return one.judged and one.missed is None and above and (model is None or one.observed >= model.low)


def _late_ranks(measured: Sequence[Measured], rates: Sequence[Rate], averaged: bool) -> Iterator[Finding]:
    """One finding for each rank or host that the others wait for."""
    by_id = {one.communicator.id: one for one in measured}
    of_unit, of_host = dict[str, Late | Shown](), dict[str, Late | Shown]()
    for name, one in by_id.items():
        for find, found in ((late_unit, of_unit), (late_host, of_host)) if one.tables else ():
            found[name] = find(name, tuple(one.tables.values()), one.units, one.operations, averaged)
    slow = defaultdict[str, float](float)
    for rate in rates:
        if rate.missed is not None:
            slow[rate.communicator.id] += rate.lost
    units = {name: frozenset(one.units.values()) for name, one in by_id.items()}
    for cause in causes_of(units, of_unit, of_host, slow):
        yield late_finding(cause, _marks(cause, by_id))


def _marks(cause: Cause, by_id: Mapping[str, Measured]) -> float | None:
    """The time, in seconds since 1970, after which a rank became late; None: from the start, or not known."""
    for one in cause.late:
        if one.first is not None:
            return by_id[one.communicator].communicator.time_before(one.first)
    return None


def _problems(log: JobLog) -> Iterator[NotChecked]:
    for what, count in sorted(log.problems.items()):
        yield NotChecked(what="job", subject="lines", reason=Reason.UNREADABLE, detail=f"{count} {what}")
    if (apart := _clock_difference(log)) is not None:
        detail = f"the clocks of its hosts differ by at least {apart:.0f} s; the times of dumps are not compared"
        yield NotChecked(what="job", subject="clocks", reason=Reason.OTHER, detail=detail)
    if len(log.jobs) > 1:
        detail = f"the lines are of {len(log.jobs)} jobs: {', '.join(sorted(log.jobs)[:5])}"
        yield NotChecked(what="job", subject="lines", reason=Reason.OTHER_CONTEXT, detail=detail)


def _clock_difference(log: JobLog) -> float | None:
    """Seconds between the hosts' times of writing, if two hosts did not write at the same time."""
    starts, ends = zip(*log.clocks.values(), strict=True) if log.clocks else ((), ())
    apart = max(starts, default=0.0) - min(ends, default=0.0)
    return apart if apart > 60 else None


def _without_machine(rates: Sequence[Rate], cluster: Cluster | None) -> Iterator[NotChecked]:
    count = sum(not one.judged for one in rates)
    if count:
        detail = f"{count} rates have no expected value: too few equal communicators" + (
            "" if cluster else ", and the type of the machines is not known"
        )
        how = None if cluster else "name the type with --machine (linkgauge profile --list)"
        yield NotChecked(what="job", subject="rates", reason=Reason.NO_EXPECTATION, detail=detail, how=how)


def _not_judged(measured: Sequence[Measured], wrong: Collection[str]) -> Iterator[NotChecked]:
    """Communicators without all ranks, or whose lines contradict each other or what links can do."""
    gaps = [gap for one in measured if (gap := _gap(one, wrong)) is not None]
    yield from gaps[:_MOST_GAPS]
    if len(gaps) > _MOST_GAPS:
        detail = f"{len(gaps) - _MOST_GAPS} more communicators lack ranks or contradict themselves"
        yield NotChecked(what="job", subject="communicators", reason=Reason.OTHER, detail=detail)


def _gap(one: Measured, wrong: Collection[str]) -> NotChecked | None:
    known, of = len(one.communicator.members), one.communicator.n_ranks
    double = sum(member.duplicate for member in one.communicator.members.values())
    if one.communicator.id in wrong:
        detail = "its times are shorter than its links allow"
    elif one.communicator.inconsistent:
        detail = "its lines differ in the number of its ranks"
    elif double:
        detail = f"two processes say that they are the same rank, for {double} of its ranks"
    elif known < of and one.communicator.members:
        detail = f"{known} of its {of} ranks wrote lines: it can clear links, but not show a slow one"
    else:
        return None
    how = "collect the files of all ranks in one folder"
    return NotChecked(what="job", subject=one.communicator.id, reason=Reason.OTHER, detail=detail, how=how)


def _job(log: JobLog, rates: Sequence[Rate], places: Mapping[Unit, Place]) -> Job:
    rows = tuple(
        JobRate(
            communicator=one.communicator.id,
            name=one.communicator.name,
            op=one.kind.op,
            algorithm=one.kind.algorithm or None,
            protocol=one.kind.protocol or None,
            size=one.kind.size,
            ranks=one.shape.ranks,
            nodes=one.shape.hosts,
            operations=one.taken.count,
            seconds=one.taken.seconds,
            observed=one.observed,
            expected=one.expected,
            low=one.missed is not None if one.judged else None,
            slower_from=one.taken.changed,
        )
        for one in rates
    )
    return Job(
        ids=tuple(sorted(log.jobs)),
        gpus=len(places),
        nodes=len({place.host for place in places.values()}),
        communicators=len(log.communicators),
        files=log.files,
        lines=log.lines,
        formats=tuple(sorted(log.versions)),
        rates=rows,
    )
