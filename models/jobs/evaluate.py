"""From the log of a job to a report: rates of its communicators, slow parts of the cluster, and late ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..diagnosis.ignored import silenced
from ..diagnosis.remedies import with_remedies
from ..diagnosis.verdict import verdict
from ..facts.units import MIB, as_utc
from ..inventory.assemble import assemble
from ..report import Finding, Job, JobRate, Profile, Report, worst_cost
from ..site.schema import Site
from ..training.cluster import Cluster
from .expected import Rate, implausible, judged, rate_of, shape_of
from .findings import straggler_finding
from .job_localization import parts_of
from .log import Communicator, JobLog, Kind
from .not_judged import gaps_of
from .placement import Place, Row, Unit, places_of, units_of
from .rates import array_size
from .slow_links import slow_links
from .step_cost import of_stragglers
from .straggler_causes import Cause, straggler_causes
from .stragglers import NoStraggler, Straggler, straggling_host, straggling_rank
from .timing import Table, table_of, taken_of

_COLLECTIVES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall"})
_LEAST = 16 * MIB  # bytes of an array; of smaller ones latency decides, not bandwidth


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
    every = tuple(_rates(measured))
    wrong = implausible(every, cluster)
    measured = [replace(one, tables={}) if one.communicator.id in wrong else one for one in measured]
    rates = judged([one for one in every if one.communicator.id not in wrong], cluster, log.averaged)
    parts = {one.communicator.id: parts_of(one.places) for one in measured if one.tables}
    found = [*slow_links(parts, rates), *_stragglers(measured, rates, log.averaged)]
    gaps = tuple(gaps_of(log, rates, wrong, cluster))
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
        cost=worst_cost(findings),
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


def _stragglers(measured: Sequence[Measured], rates: Sequence[Rate], averaged: bool) -> Iterator[Finding]:
    """One finding for each rank or host that the others wait for."""
    by_id = {one.communicator.id: one for one in measured}
    of_unit, of_host = dict[str, Straggler | NoStraggler](), dict[str, Straggler | NoStraggler]()
    for name, one in by_id.items():
        for find, found in ((straggling_rank, of_unit), (straggling_host, of_host)) if one.tables else ():
            found[name] = find(name, tuple(one.tables.values()), one.units, one.operations, averaged)
    slow = defaultdict[str, float](float)
    for rate in rates:
        if rate.missed is not None:
            slow[rate.communicator.id] += rate.lost
    units = {name: frozenset(one.units.values()) for name, one in by_id.items()}
    for cause in straggler_causes(units, of_unit, of_host, slow):
        impact = of_stragglers(cause.stragglers, {name: one.communicator for name, one in by_id.items()})
        yield straggler_finding(cause, _marks(cause, by_id), impact)


def _marks(cause: Cause, by_id: Mapping[str, Measured]) -> float | None:
    """The time, in seconds since 1970, after which a rank became late; None: from the start, or not known."""
    for one in cause.stragglers:
        if one.first is not None:
            return by_id[one.communicator].communicator.time_before(one.first)
    return None


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
