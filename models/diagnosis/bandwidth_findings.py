"""Findings about slow flows that no state explains: a single flow, or several flows with a common cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..bandwidth.contention import contended
from ..bandwidth.repeated_rates import start_of
from ..catalog.chipsets import Limit
from ..facts.averages import median
from ..facts.records import Evidence, Flow
from ..facts.units import as_gigabytes
from ..graph.flow_paths import hops_of, sub_flows
from ..graph.topology import Hop, Link
from ..inventory.snapshot import Snapshot
from ..report import ABSOLUTE, COHORT, Expectation, Finding, Level, Severity
from .localization import Candidate, Localization

# Reported matrices of healthy consumer machines show a spread of 12 % between pairs of GPUs. Their paths differ, and a
# matrix alone does not show the paths.
_UNEQUAL_PATHS = 0.15
_CRITICAL = 0.9  # of the lowest expected rate; below it a job loses more than a tenth
_MOST_EVIDENCE = 6
_ENDS = frozenset({"gpu", "nic", "nvme", "storage", "numa"})
_COLLAPSED = 0.5  # rate of several copies together, as a share of the rate of one copy
_ROOTS = frozenset({"package", "numa", "host", "host-bridge", "root-port"})
_UNEXPLAINED = "no state that was read explains it"


class Slow(Struct, frozen=True):
    """A flow below its expected rate; `share` is the share of its rate that known limits leave."""

    level: Level
    missed: Expectation
    share: float
    evidence: Evidence

    @property
    def observed(self) -> float:
        """Bytes per second."""
        return self.level.observed or 0.0

    @property
    def expected(self) -> float:
        """Bytes per second: the typical rate, reduced by known limits."""
        return self.missed.typical * self.share


def alone(snapshot: Snapshot, slow: Slow) -> Finding:
    """A finding about one slow flow without a common cause with others."""
    level, missed = slow.level, slow.missed
    known = f"; what limits that are known leave is {as_gigabytes(slow.expected)}" if slow.share < 1 else ""
    tightest = f"; the tightest hop is {missed.bottleneck}" if missed.bottleneck else ""
    return Finding(
        code="storage-slow" if _is_read(snapshot, level.flow) else "bandwidth-low",
        kind="measurement",
        severity=_severity(snapshot, [slow]),
        confidence="likely",
        subject=level.flow.subject,
        fact=f"{level.op} reaches {as_gigabytes(slow.observed)} of {as_gigabytes(missed.typical)}",
        message=f"{level.op} {level.flow.subject} reaches {as_gigabytes(slow.observed)}, "
        f"expected {as_gigabytes(missed.typical)} and at least {as_gigabytes(missed.low)}{known}",
        expected=missed.typical,
        observed=slow.observed,
        unit="bytes_per_second",
        basis=missed.basis,
        expected_source=missed.source,
        cause=f"{_UNEXPLAINED}{tightest}",
        since=start_of(snapshot, [level.flow]),
        evidence=(slow.evidence,),
    )


def shared(snapshot: Snapshot, localized: Localization, slow: Sequence[Slow], levels: Sequence[Level]) -> Finding:
    """A finding about several slow flows with one common cause. The pattern of slow flows determines the code."""
    candidate = localized.candidate
    code, cause = _kind(snapshot, localized, levels)
    expected, observed = (median(rates) for rates in ([s.expected for s in slow], [s.observed for s in slow]))
    worst = min(slow, key=lambda one: one.observed / one.expected)
    share = min(1.0, observed / expected)  # the slow link loses the same share of its rated rate
    ends = {one.level.flow.subject for one in slow}
    # In one collective over several sizes all ranks are equally likely candidates: the finding is about all of them.
    whole = ends.pop() if localized.others and len(ends) == 1 and len(slow[0].level.ends) > 2 else None
    links = () if whole else _links(snapshot, candidate)
    fit = " or ".join(_text(snapshot, other) for other in localized.others[:3] if not whole)
    what = whole or _text(snapshot, candidate)
    return Finding(
        code=code,
        kind="measurement",
        severity=_severity(snapshot, slow) if code == "bandwidth-low" else "warning",
        confidence="possible" if localized.others else "likely",
        subject=whole or _subject(snapshot, candidate, links),
        fact=f"limits {len(slow)} flows to {as_gigabytes(observed)} of {as_gigabytes(expected)}",
        message=f"{len(slow)} flows that have {what} in common reach {as_gigabytes(observed)} "
        f"where {as_gigabytes(expected)} is expected; nothing {_where(candidate)} was faster",
        expected=expected,
        observed=observed,
        unit="bytes_per_second",
        basis=worst.missed.basis,
        expected_source=worst.missed.source,
        cause=f"{cause}; {fit} would explain it as well" if fit else cause,
        limits={link.id: link.rated * share for link in links if link.rated} if candidate.kind == "link" else {},
        explains=tuple(f"bandwidth-low:{one.level.flow.subject}" for one in slow),
        since=start_of(snapshot, [one.level.flow for one in slow]),
        evidence=tuple(one.evidence for one in sorted(slow, key=lambda one: one.observed)[:_MOST_EVIDENCE]),
    )


def contention_findings(snapshot: Snapshot, levels: Sequence[Level]) -> Iterator[Finding]:
    """Simultaneous copies that collapse far below the rate of their links, on a chipset with a known limit."""
    runs: dict[frozenset[tuple[str, ...]], list[Level]] = {}
    for level in levels:
        if level.beside and level.observed is not None:
            runs.setdefault(frozenset((level.ends, *level.beside)), []).append(level)
    for several in runs.values():
        routed = {level.flow: sub_flows(snapshot.topology, level.flow) for level in several}
        for uplink, limit in contended(snapshot.topology, routed).items():
            over = [level for level in several if uplink in hops_of(snapshot.topology, level.flow)]
            rate = sum(level.observed or 0.0 for level in over)
            if rate < _COLLAPSED * limit.otherwise:
                yield _contention_finding(snapshot, uplink, limit, over, rate)


def _contention_finding(snapshot: Snapshot, uplink: Hop, limit: Limit, over: Sequence[Level], rate: float) -> Finding:
    return Finding(
        code="pcie-concurrent-collapse",
        kind="measurement",
        severity="warning",
        subject=uplink.sender,
        message=f"{len(over)} copies at the same time from GPUs below {_called(snapshot, uplink.sender)} reach "
        f"{as_gigabytes(rate)} together; a single one over the same links reaches {as_gigabytes(limit.otherwise)}",
        expected=limit.otherwise,
        observed=rate,
        unit="bytes_per_second",
        basis="capability",
        expected_source=limit.source,
        cause=f"this switch and processor are known for it: {limit.name}",
        limits={link.id: limit.rate / len(uplink.links) for link in uplink.links},
        explains=tuple(f"bandwidth-low:{level.flow.subject}" for level in over),
    )


def _kind(snapshot: Snapshot, localized: Localization, levels: Sequence[Level]) -> tuple[str, str]:
    """The finding code and the cause as text."""
    candidate, flows = localized.candidate, localized.flows
    kind = snapshot.topology.kind(candidate.names[0])
    if all(_is_read(snapshot, flow) for flow in flows):
        return "storage-slow", _UNEXPLAINED
    if candidate.kind == "turnaround" and all(_are_gpus(snapshot, flow) for flow in flows):
        if kind in _ROOTS:
            return "pcie-peer-slow", "the processor passes writes between its roots on more slowly than its links could"
        return "pcie-acs-redirect", "as access control (ACS) does, which sends them up to the processor and back"
    fast_alone = {(level.op, level.ends, level.via) for level in levels if not level.beside and not _missed(level)}
    contended = all(flow.beside and (flow.op, flow.ends, flow.via) in fast_alone for flow in flows)
    if contended and any(link.kind == "pcie" for link in _links(snapshot, candidate)):
        return "pcie-concurrent-collapse", "each of them alone is as fast as expected: what they share collapses"
    return "bandwidth-low", _UNEXPLAINED


def _missed(level: Level) -> bool:
    return level.observed is None or any(level.observed < one.low for one in level.expected)


def _severity(snapshot: Snapshot, slow: Sequence[Slow]) -> Severity:
    """critical: a flow loses more than a tenth by an absolute basis. info: a more trusted basis is met, or the flows
    differ as much as healthy flows over different paths.
    """
    grades = [_grade(snapshot, one) for one in slow]
    return "critical" if "critical" in grades else "warning" if "warning" in grades else "info"


def _grade(snapshot: Snapshot, slow: Slow) -> Severity:
    if slow.missed.basis not in ABSOLUTE:
        near = slow.observed >= (1 - _UNEQUAL_PATHS) * slow.expected
        unknown = snapshot.origin == "dumps" and not hops_of(snapshot.topology, slow.level.flow)
        return "info" if slow.missed.basis == COHORT and near and unknown else "warning"
    if slow.missed is not slow.level.expected[0]:
        return "info"
    return "critical" if slow.observed < _CRITICAL * slow.missed.low else "warning"


def _is_read(snapshot: Snapshot, flow: Flow) -> bool:
    """Whether the flow reads a disk or an array."""
    return any(snapshot.topology.kind(end) in ("disk", "partition", "array", "nvme") for end in flow.ends)


def _are_gpus(snapshot: Snapshot, flow: Flow) -> bool:
    return len(flow.ends) == 2 and all(snapshot.topology.kind(end) == "gpu" for end in flow.ends)


def _links(snapshot: Snapshot, candidate: Candidate) -> tuple[Link, ...]:
    """The parallel links of a candidate; empty unless it is a link. Links to any NVSwitch are links to the fabric."""
    if candidate.kind not in ("hop", "link"):
        return ()
    first, last = candidate.names
    hops = (snapshot.topology.memory.get(first),) if first == last else snapshot.topology.hops.get(first, ())
    return next((hop.links for hop in hops if hop and hop.receiver == last), ())


def _subject(snapshot: Snapshot, candidate: Candidate, links: Sequence[Link]) -> str:
    """For a link the device at its lower end: a technician starts there."""
    if candidate.kind == "pair":
        return "-".join(candidate.names)
    ends = [name for name in candidate.names if snapshot.topology.kind(name) in _ENDS]
    return ends[0] if ends else links[0].b if links else candidate.names[0]


def _text(snapshot: Snapshot, candidate: Candidate) -> str:
    """The candidate as text."""
    first, last = (_called(snapshot, name) for name in (candidate.names[0], candidate.names[-1]))
    if candidate.kind in ("hop", "link") and first == last:
        return f"the memory of {first}"
    if candidate.kind == "hop":
        return f"the link from {first} to {last}"
    if candidate.kind == "link":
        return f"the link between {first} and {last}"
    if candidate.kind == "pair":
        return f"both ends, {first} and {last},"
    return f"the turnaround at {first}" if candidate.kind == "turnaround" else first


def _where(candidate: Candidate) -> str:
    return "between them" if candidate.kind == "pair" else "over it"


def _called(snapshot: Snapshot, name: str) -> str:
    device = snapshot.topology.find(name)
    return " ".join(dict.fromkeys((*device.aliases, device.id))) if device else name
