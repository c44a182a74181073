"""Series of links and of the flows over them: rated, trained, expected, observed, under the same labels.

A page has to stay small: ports inside the machine are there only while a finding is about them, NVLinks as one bundle a
GPU, and of more than 16 flows that are alike the worst and the median. `detail = "links"` has all of them.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ...models.facts.units import from_utc
from ...models.graph.topology import FORWARDS, INSIDE, Link, Topology
from ...models.report import Level, Report, Seen
from .sample import Round, Sample

_FEW = 16  # flows alike that each have series: eight GPUs and two NUMA nodes
_BUNDLED = frozenset({"nvlink", "xgmi", "c2c"})
_RATES = ("rated", "trained", "expected", "observed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One link or flow. Bytes per second; None is not known."""

    subject: str
    kind: str  # of a link as the topology has it: pcie, nvlink, port; of a flow what it does: copy, all_reduce
    via: str = ""
    rated: float | None = None
    trained: float | None = None
    expected: float | None = None
    observed: float | None = None
    at: float | None = None  # seconds since 1970

    @property
    def ratio(self) -> float | None:
        """Observed by expected."""
        return self.observed / self.expected if self.observed is not None and self.expected else None


def links(report: Report, round: Round | None, detail: str) -> Iterator[Sample]:
    """The series of all links and flows that are shown."""
    for row in rows(report, round, detail):
        labels = {"subject": row.subject, "kind": row.kind, "via": row.via}
        for name in _RATES:
            if (rate := getattr(row, name)) is not None:
                yield Sample(f"linkgauge_link_{name}_bytes_per_second", labels, rate)
        if row.ratio is not None:
            yield Sample("linkgauge_link_attained_ratio", labels, row.ratio)
        if row.observed is not None and row.at is not None:
            yield Sample("linkgauge_observation_timestamp_seconds", labels, row.at)


def rows(report: Report, round: Round | None, detail: str) -> Iterator[Row]:
    """Links, then flows; what was observed too long ago is not told."""
    found = [*_links(report, detail), *_flows(report, detail)]
    seen = {(one.about, one.quantity): one for one in report.observations if one.unit == "bytes_per_second"}
    for row in found:
        told = seen.get((row.subject, f"{row.kind}_traffic"))
        full = _with_traffic(row, told) if told and row.observed is None else row
        over = round is not None and full.at is not None and round.is_over(full.at, round.rates_last)
        yield replace(full, observed=None, at=None) if over else full


def _with_traffic(row: Row, told: Seen) -> Row:
    """What jobs sent over a link shows what it can do."""
    return replace(row, observed=told.value, at=from_utc(told.at))


def _links(report: Report, detail: str) -> Iterable[Row]:
    """One row for each subject and kind. Detail adds rows and changes none: a row of the usual page keeps its rates."""
    usual = _by_name(_rows_of_links(report, ""))
    return {**_by_name(_rows_of_links(report, detail)), **usual}.values() if detail else usual.values()


def _by_name(found: Iterable[Row]) -> Mapping[tuple[str, str], Row]:
    """The rows by subject and kind; of two rows with one name the first."""
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
    """The links of each GPU to its peers, switches and processor, by the GPU and their kind."""
    found: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in topology.links:
        if link.kind in _BUNDLED:
            for end in dict.fromkeys((link.a, link.b)):  # a link from a GPU to itself counts once
                if topology.kind(end) == "gpu":
                    found[end, link.kind].append(link)
    return found


def _is_inside(topology: Topology, link: Link) -> bool:
    """A hop between ports of the machine, or a part of a device: what ends at a device matters to somebody by name."""
    between = link.kind == "pcie" and topology.kind(link.b) in FORWARDS
    return between or (link.kind in INSIDE and link.kind != "port")


def _end(link: Link) -> str:
    """What findings about a link are about: what it leads to."""
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
    """Of the sizes in which a flow was measured the longest, which reaches the rate of its link."""
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
    """Of several expectations the first, which is trusted most."""
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
    """The worst under its own name; the median of all of them as the node's."""
    yield min(alike, key=lambda row: (row.ratio is None, row.ratio or 0.0, row.observed or 0.0, row.subject))
    middle = {name: _median(getattr(row, name) for row in alike) for name in (*_RATES, "at")}
    yield Row(subject="node", kind=alike[0].kind, via=alike[0].via, **middle)


def _median(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return statistics.median(known) if known else None
