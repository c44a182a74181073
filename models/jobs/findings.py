"""Findings about a job, in the codes of findings about a node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..facts.averages import median
from ..facts.records import Evidence
from ..facts.units import as_gigabytes, as_size, as_utc
from ..report import Finding
from .candidates import any_of, in_words, next_measurement
from .expected import Rate
from .job_localization import Located, Part
from .placement import Unit
from .step_cost import of_links
from .straggler_causes import Cause
from .stragglers import Straggler

_MOST_NAMED = 8
_MOST_EVIDENCE = 6
_HOW_LATE = (
    "Run linkgauge diagnose on each of these nodes while the job runs: it shows throttled GPUs and limited clocks. "
    "Compare the time of the forward pass, and of the input, of {hosts}."
)


def localized_finding(located: Located, rates: Sequence[Rate], hosts: Collection[str]) -> Finding:
    """A part that explains slow communicators. With several parts, or none, it is not decidable which one is slow.

    `hosts`: those of the communicators.
    """
    expected, observed, lost = _medians(rates)
    first = located.parts[0] if len(located.parts) == 1 else None
    count = len(located.communicators)
    many = f"{count} communicators reach" if count > 1 else "one communicator reaches"
    op, rate = rates[0].kind.op, f"{as_gigabytes(observed)} of {as_gigabytes(expected)}"
    what, cause = _in_words(located, f"{many[0].upper()}{many[1:]} that rate, and all of them use it")
    return Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="warning",
        confidence="likely" if first else "possible",
        subject=first.name if first else _name(rates[0]),
        fact=f"limits {op} to {rate}" if first else f"{op} reaches {rate}",
        message=f"{what} limits collectives of the job: {many} "
        f"{as_gigabytes(observed)} of bus bandwidth where {as_gigabytes(expected)} is expected{lost}",
        expected=expected,
        observed=observed,
        unit="bytes_per_second",
        basis=rates[0].missed.basis if rates[0].missed else None,
        expected_source=rates[0].missed.source if rates[0].missed else None,
        cause=cause,
        candidates=() if first else tuple(part.name for part in located.parts),
        impact=of_links(rates),
        cost="slower",
        case="in a job",
        explains=tuple(f"bandwidth-low:{name}" for name in sorted(located.communicators)[:_MOST_NAMED]),
        since=_since(rates),
        evidence=_evidence(rates),
        remedy=None if first else next_measurement(located.parts, _hosts(located.parts, hosts)),
    )


def _in_words(located: Located, of_one: str) -> tuple[str, str]:
    """What is slow, and the cause; `of_one`: the cause if it is a single part."""
    if len(located.parts) == 1:
        return in_words(located.parts), of_one
    parts = in_words(located.parts) or "other communicators over the same links are well"
    return "a link that the job does not show", f"not decidable from this job: {parts}"


def uniform_finding(rates: Sequence[Rate], parts: Sequence[Part], hosts: Collection[str]) -> Finding:
    """Equal communicators that are all slower than their machines allow. `parts`: what all of them use."""
    expected, observed, lost = _medians(rates)
    one = rates[0]
    many = f"all {len(rates)} communicators" if len(rates) > 1 else "the communicator"
    links = in_words(parts) or "the network"
    return Finding(
        code="bandwidth-low",
        kind="measurement",
        severity="warning",
        confidence="possible",
        subject=_name(one),
        fact=f"{one.kind.op} reaches {as_gigabytes(observed)} of {as_gigabytes(expected)}",
        message=f"{many} of {one.shape.ranks} ranks on {one.shape.hosts} nodes: {one.kind.op} of "
        f"{as_size(one.kind.size)} reaches {as_gigabytes(observed)} of bus bandwidth where {as_gigabytes(expected)} is "
        f"expected{lost}. The job does not show why: no equal communicator is faster",
        expected=expected,
        observed=observed,
        unit="bytes_per_second",
        basis=one.missed.basis if one.missed else None,
        expected_source=one.missed.source if one.missed else None,
        cause=f"not decidable from this job: computation at the same time, settings of NCCL, or {links}",
        candidates=tuple(part.name for part in parts),
        impact=of_links(rates),
        cost="slower",
        case="in a job",
        since=_since(rates),
        evidence=_evidence(rates),
        remedy=next_measurement(parts, _hosts(parts, hosts)),
    )


def _hosts(parts: Sequence[Part], hosts: Collection[str]) -> Collection[str]:
    """The nodes to measure: those of the parts, if each part is one of a node."""
    own = {part.host for part in parts}
    return own if own and "" not in own else hosts


def straggler_finding(cause: Cause, since: float | None, impact: Mapping[str, float]) -> Finding:
    """A rank for which the others wait, or the ranks of one node, or several of which any can be the cause.

    `impact`: how many times longer a step takes.
    """
    one, host = max(cause.stragglers, key=lambda each: each.waits), cause.host
    first = cause.members[0]
    process = first.process if isinstance(first, Unit) and len(cause.members) == 1 else "a process"
    who = f"{process} on {host}"
    hosts = sorted({each if isinstance(each, str) else each.host for each in cause.members})
    named = any_of(hosts)
    ranks = "; ".join(_ranks(each) for each in cause.stragglers[:_MOST_NAMED])
    from_number = f", from operation {one.first} on" if one.first is not None else ""
    return Finding(
        code="node-slow",
        kind="measurement",
        severity="warning",
        confidence="likely" if host else "possible",
        subject=host or one.communicator,
        fact=f"keeps the other ranks waiting for {_milliseconds(one.waits)} per collective",
        message=f"{who if host else f'a process on {named}'} arrives last in {one.share:.0%} of the collectives; the "
        f"other ranks wait {_milliseconds(one.waits)} of {_milliseconds(one.of)} in each{from_number}",
        expected=one.of - one.waits,
        observed=one.of,
        unit="seconds",
        cause=f"its computation or its input is slow, not a link ({ranks})"
        if host
        else f"not decidable from this job which of these nodes is slow ({ranks})",
        candidates=() if host else tuple(hosts),
        impact=impact,
        cost="slower" if impact else "unknown",
        case="rank",
        since=as_utc(since) if since else None,
        evidence=tuple(Evidence(_ranks(each), _waited(each)) for each in cause.stragglers[:_MOST_EVIDENCE]),
        remedy=None if host else _HOW_LATE.format(hosts=any_of(hosts)),
    )


def _ranks(one: Straggler) -> str:
    several = ", ".join(map(str, one.ranks[:_MOST_NAMED]))
    return f"rank {several} of {one.communicator}"


def _waited(one: Straggler) -> str:
    return f"last in {one.share:.0%}; the others wait {_milliseconds(one.waits)} of {_milliseconds(one.of)}"


def _medians(rates: Sequence[Rate]) -> tuple[float, float, str]:
    """Expected and observed rate, and what the difference costs."""
    expected = median([one.missed.typical for one in rates if one.missed])
    observed = median([one.observed for one in rates])
    slowest = max(rates, key=lambda one: one.taken.seconds)
    usual = slowest.taken.seconds * slowest.observed / (slowest.missed.typical if slowest.missed else slowest.observed)
    lost = f"; one {slowest.kind.op} of {as_size(slowest.kind.size)} takes {_milliseconds(slowest.taken.seconds)} "
    return expected, observed, f"{lost}instead of {_milliseconds(usual)}"


def _since(rates: Sequence[Rate]) -> str | None:
    """The time after which most of these communicators became slower, if all of them did during the job."""
    changed = [one for one in rates if one.taken.changed is not None]
    if len(changed) < len(rates):
        return None
    noted = [one.communicator.time_before(one.taken.changed) for one in changed if one.taken.changed is not None]
    times = [at for at in noted if at is not None]
    return as_utc(min(times)) if times else f"operation {changed[0].taken.changed} of {_name(changed[0])}"


def _evidence(rates: Sequence[Rate]) -> tuple[Evidence, ...]:
    slowest = sorted(rates, key=lambda one: (one.observed, one.communicator.id))
    return tuple(
        Evidence(
            f"communicator {_name(one)}",
            f"{one.kind.op} of {as_size(one.kind.size)}, {one.shape.ranks} ranks on {one.shape.hosts} nodes: "
            f"{as_gigabytes(one.observed)}, median of {one.taken.columns}",
        )
        for one in slowest[:_MOST_EVIDENCE]
    )


def _name(one: Rate) -> str:
    name = one.communicator.name
    return f"{name} ({one.communicator.id})" if name and name not in one.communicator.id else one.communicator.id


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
