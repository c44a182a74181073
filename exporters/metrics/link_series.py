"""Series of links and flows: rated, trained, expected and observed rates with the same labels.

To keep the page small, internal ports have series only while a finding names them, the NVLinks of a GPU are one bundle,
and more than 16 equal flows are reduced to the worst and the median. `detail = "links"` shows all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ...models.facts.averages import median
from ...models.facts.units import from_utc
from ...models.graph.topology import FORWARDS, INSIDE, Link, Topology
from ...models.report import Level, Report, ReportedObservation
from .sample import CycleInfo, Sample

_FEW = 16  # up to this number of equal flows each flow has series: eight GPUs and two NUMA nodes
_BUNDLED = frozenset({"nvlink", "xgmi", "c2c"})
_RATES = ("rated", "trained", "expected", "observed")


class Row(Struct, frozen=True, kw_only=True):
    """One link or flow. Rates in bytes per second; None: not known."""

    subject: str
    kind: str  # kind of link (pcie, nvlink, port) or operation of a flow (copy, all_reduce)
    via: str = ""
    rated: float | None = None
    trained: float | None = None
    expected: float | None = None
    observed: float | None = None
    at: float | None = None  # seconds since 1970

    @property
    def ratio(self) -> float | None:
        """Observed divided by expected rate."""
        return self.observed / self.expected if self.observed is not None and self.expected else None


def links(report: Report, cycle: CycleInfo | None, detail: str) -> Iterator[Sample]:
    """The series of all links and flows."""
    for row in rows(report, cycle, detail):
        labels = {"subject": row.subject, "kind": row.kind, "via": row.via}
        for name in _RATES:
            if (rate := getattr(row, name)) is not None:
                yield Sample(f"linkgauge_link_{name}_bytes_per_second", labels, rate)
        if row.ratio is not None:
            yield Sample("linkgauge_link_attained_ratio", labels, row.ratio)
        if row.observed is not None and row.at is not None:
            yield Sample("linkgauge_observation_timestamp_seconds", labels, row.at)


def rows(report: Report, cycle: CycleInfo | None, detail: str) -> Iterator[Row]:
    """The rows of links, then of flows. Observations that are too old are left out."""
    found = [*_links(report, detail), *_flows(report, detail)]
    seen = {(one.about, one.quantity): one for one in report.observations if one.unit == "bytes_per_second"}
    for row in found:
        traffic = seen.get((row.subject, f"{row.kind}_traffic"))
        full = _with_traffic(row, traffic) if traffic and row.observed is None else row
        over = cycle is not None and full.at is not None and cycle.is_stale(full.at, cycle.rate_lifetime)
        yield replace(full, observed=None, at=None) if over else full


def _with_traffic(row: Row, traffic: ReportedObservation) -> Row:
    """The row with the traffic of jobs as its observed rate."""
    return replace(row, observed=traffic.value, at=from_utc(traffic.at))


def _links(report: Report, detail: str) -> Iterable[Row]:
    """One row per subject and kind. Detail adds rows and does not change the rows of the page without detail."""
    usual = _by_name(_rows_of_links(report, ""))
    return {**_by_name(_rows_of_links(report, detail)), **usual}.values() if detail else usual.values()


def _by_name(found: Iterable[Row]) -> Mapping[tuple[str, str], Row]:
    """The rows by (subject, kind); the first one if two are equal."""
    first: dict[tuple[str, str], Row] = {}
    for row in found:
        first.setdefault((row.subject, row.kind), row)
    return first


def _rows_of_links(report: Report, detail: str) -> Iterator[Row]:
    localized = {name for one in report.findings for name in (one.subject, *one.limits)}
    for link in report.topology.links:
        if link.kind in _BUNDLED:
            if detail:
                yield Row(subject=link.id, kind=link.kind, rated=link.rated, trained=link.trained)
        elif detail or not _is_inside(report.topology, link) or {link.id, link.a, link.b} & localized:
            yield Row(subject=_end(link), kind=link.kind, rated=link.rated, trained=link.trained)
    for (device, kind), bundle in bundles(report.topology).items():
        rated, trained = _sum(one.rated for one in bundle), _sum(one.trained for one in bundle)
        yield Row(subject=device, kind=kind, rated=rated, trained=trained)


def bundles(topology: Topology) -> Mapping[tuple[str, str], list[Link]]:
    """(GPU, kind) -> the links of this kind to peers, switches and processors."""
    found: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in topology.links:
        if link.kind in _BUNDLED:
            for end in dict.fromkeys((link.a, link.b)):  # a link from a GPU to itself counts once
                if topology.kind(end) == "gpu":
                    found[end, link.kind].append(link)
    return found


def _is_inside(topology: Topology, link: Link) -> bool:
    """Whether the link is a hop between internal ports or a part of a device, and does not end at a device."""
    between = link.kind == "pcie" and topology.kind(link.b) in FORWARDS
    return between or (link.kind in INSIDE and link.kind != "port")


def _end(link: Link) -> str:
    """The subject of a link as in findings: its far end."""
    return link.id if link.kind == "interconnect" else link.b


def _sum(rates: Iterable[float | None]) -> float | None:
    known = list(rates)
    return None if None in known else sum(rate for rate in known if rate is not None)


def _flows(report: Report, detail: str) -> Iterator[Row]:
    alike: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for level in _longest(report.levels):
        kinds = tuple(report.topology.kind(end) for end in level.ends)
        alike[level.op, level.via, kinds, bool(level.beside)].append(_row(level))
    for several in alike.values():
        yield from several if detail or len(several) <= _FEW else _worst_and_median(several)


def _longest(levels: Iterable[Level]) -> Iterator[Level]:
    """The level with the largest message size of each flow, because it reaches the rate of the link."""
    best: dict[tuple[object, ...], Level] = {}
    for level in levels:
        key = (level.op, level.ends, level.via, bool(level.beside))
        before = best.get(key)
        if before is None or _size(level) > _size(before):
            best[key] = level
    yield from best.values()


def _size(level: Level) -> float:
    return float("inf") if level.size is None else level.size


def _row(level: Level) -> Row:
    """The row of a flow. The first expectation is the most reliable one."""
    return Row(
        subject=level.flow.subject,
        kind=f"{level.op}-concurrent" if level.beside else level.op,
        via=level.via,
        rated=level.rated,
        trained=level.trained,
        expected=level.expected[0].typical if level.expected else None,
        observed=level.observed,
        at=from_utc(level.observed_at) if level.observed_at else None,
    )


def _worst_and_median(alike: list[Row]) -> Iterator[Row]:
    """The worst flow under its own name, and the median of all flows with the subject "node"."""
    yield min(alike, key=lambda row: (row.ratio is None, row.ratio or 0.0, row.observed or 0.0, row.subject))
    middle = {name: _median(getattr(row, name) for row in alike) for name in (*_RATES, "at")}
    yield Row(subject="node", kind=alike[0].kind, via=alike[0].via, **middle)


def _median(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return median(known) if known else None
