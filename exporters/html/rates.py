"""Rates of a report as tables: heat maps of copies, other flows, flows by level, and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ...models.facts.units import as_size
from ...models.graph.path_types import natural
from ...models.graph.topology import Link
from ...models.report import Level, Report
from ..drawing.curves import by_size
from ..drawing.states import active
from ..text.quantities import is_slower
from ..text.vocabulary import counted, device_in_words

_END = re.compile(r"(gpu|numa)\d+")
_PCIE = re.compile(r"pcie(\d)x(\d+)")
_GRADES = {"nvlink": "NVLink", "xgmi": "xGMI", "c2c": "C2C", "roce": "RoCE port", "infiniband": "InfiniBand port"}
_NUMBER = re.compile(r"^\D+(?=\d)")
_ROOMY = 16  # columns of a matrix up to which it has room for names
_MOST_SLOW = 12  # names of slow links


class Cell(Struct, frozen=True):
    """A measured rate in GB/s."""

    text: str
    state: str  # "low", "mid" or "good", as the classes of the page


class Matrix(Struct, frozen=True):
    """Measured rates from each row to each column. `dense`: small, with numbers as headings."""

    title: str
    dense: bool
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]


class Rate(Struct, frozen=True):
    """A measured rate that is in no matrix."""

    flow: str
    expected: str
    cell: Cell | None


class Links(Struct, frozen=True):
    """Links of one kind with the same rates in GB/s. `slow`: those below their rated rate, by device."""

    kind: str
    count: int
    rated: str
    trained: str
    slow: str
    fault: bool  # a finding is about one of them


class Tier(Struct, frozen=True):
    """Flows of one kind with equal rated, trained and expected rates, in GB/s."""

    flows: str
    number: int
    rated: str
    trained: str
    expected: str
    observed: str


def matrices(report: Report) -> Iterator[Matrix]:
    """The measured copies between GPUs and NUMA nodes, by the kinds of both ends."""
    groups: dict[tuple[str, str, str], dict[tuple[str, str], Level]] = {}
    for level in report.levels:
        if level.observed is not None and _in_matrix(level):
            sender, receiver = level.ends
            kinds = _END.sub(r"\1", sender), _END.sub(r"\1", receiver)
            groups.setdefault((level.op, *kinds), {})[sender, receiver] = level
    for (op, source, target), cells in groups.items():
        rows, columns = (tuple(sorted({ends[side] for ends in cells}, key=natural)) for side in (0, 1))
        shown = tuple((row, tuple(_cell(cells.get((row, column))) for column in columns)) for row in rows)
        dense = len(columns) > _ROOMY
        heads = tuple(_NUMBER.sub("", column) for column in columns) if dense else columns
        title = f"Measured: {op}, {device_in_words(source)} to {device_in_words(target)}"
        yield Matrix(title, dense, heads, shown)


def _in_matrix(level: Level) -> bool:
    return len(level.ends) == 2 and not level.beside and all(map(_END.fullmatch, level.ends))


def others(report: Report) -> Iterator[Rate]:
    """The other measured rates."""
    for level in report.levels:
        if level.observed is not None and not _in_matrix(level):
            best = level.expected[0] if level.expected else None
            wanted = f"{best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else "not known"
            beside = f", beside {counted(len(level.beside), 'flow')}" if level.beside else ""
            size = f", {as_size(level.size)}" if level.size is not None else ""
            yield Rate(f"{level.op} {level.flow.subject}{size}{beside}", wanted, _cell(level))


def _cell(level: Level | None) -> Cell | None:
    if level is None or level.observed is None:
        return None
    text = f"{level.observed / 1e9:.1f}"
    if not level.expected:
        return Cell(text, "")
    best = level.expected[0]
    middle = (best.low + best.typical) / 2
    return Cell(text, "low" if level.observed < best.low else "mid" if level.observed < middle else "good")


def links(report: Report) -> Iterator[Links]:
    """The links by kind and rates, the slow ones below the others of their kind."""
    groups: dict[tuple[str, float | None, float | None], list[Link]] = {}
    for link in report.topology.links:
        if link.grade and (link.rated is not None or link.trained is not None):
            groups.setdefault((link.grade, link.rated, link.trained), []).append(link)
    limited = {link for finding in active(report) for link in finding.limits}
    for (grade, rated, trained), alike in sorted(groups.items(), key=lambda group: _order(*group[0])):
        slow = ", ".join(_end(report, link) for link in alike[:_MOST_SLOW] if is_slower(link))
        more = f" and {len(alike) - _MOST_SLOW} more" if slow and len(alike) > _MOST_SLOW else ""
        now = _gigabytes(trained) if alike[0].kind != "memory" else "not applicable"
        fault = any(link.id in limited for link in alike)
        slow += more + ("" if fault or not slow else " (no finding)")
        yield Links(_grade_in_words(grade), len(alike), _gigabytes(rated, "not known"), now, slow, fault)


def _order(grade: str, rated: float | None, trained: float | None) -> tuple[str, float, float]:
    """Kinds by name, then the fastest first."""
    able = rated if rated is not None else trained or 0.0
    return grade.rstrip("0123456789x"), -able, -(trained if trained is not None else able)


def _grade_in_words(grade: str) -> str:
    """ "PCIe 5.0 x16", "NVLink 4", "HBM"."""
    if found := _PCIE.fullmatch(grade):
        return f"PCIe {found[1]}.0 x{found[2]}"
    name = grade.rstrip("0123456789")
    number = grade.removeprefix(name)
    return f"{_GRADES[name]} {number}".strip() if name in _GRADES else grade.upper()


def _end(report: Report, link: Link) -> str:
    """The name of the device that a link belongs to: the GPU of an NVLink, the device below a PCIe link."""
    if "/" in link.id and link.kind != "port":
        return link.id
    device = report.topology.find(link.b)
    return device.aliases[0] if device and device.aliases else link.b


def _gigabytes(rate: float | None, unknown: str = "not read") -> str:
    return unknown if rate is None else f"{rate / 1e9:.1f}" if rate else "down"


def tiers(report: Report) -> Iterator[Tier]:
    """The flows of the report by kind: those between devices of equal kinds, with equal rates."""
    groups: dict[tuple[object, ...], list[Level]] = {}
    drawn = {id(level) for levels in by_size(report) for level in levels}  # curves show them
    for level in report.levels:
        if id(level) in drawn:
            continue
        best = level.expected[0] if level.expected else None
        expected = (best.low, best.high) if best else None
        groups.setdefault((_flows(report, level), level.rated, level.trained, expected), []).append(level)
    for alike in groups.values():
        one = alike[0]
        best = one.expected[0] if one.expected else None
        wanted = f"{best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else "not known"
        yield Tier(_flows(report, one), len(alike), _known(one.rated), _known(one.trained), wanted, _seen(alike))


def _flows(report: Report, level: Level) -> str:
    """ "copy GPU to GPU, nvlink": the kind of a flow, with the kinds of its ends."""
    kinds = [device_in_words(report.topology.kind(end)) for end in level.ends]
    several = f"of {len(kinds)} {kinds[0]}s" if len(kinds) > 2 else f"in a {kinds[0]}"
    ends = " to ".join(kinds) if len(kinds) == 2 else several
    size = as_size(level.size) if level.size is not None else ""
    beside = f"beside {counted(len(level.beside), 'flow')}" if level.beside else ""
    return ", ".join(filter(None, (f"{level.op} {ends}", level.via, size, beside)))


def _known(rate: float | None) -> str:
    return "" if rate is None else _gigabytes(rate)


def _seen(levels: Sequence[Level]) -> str:
    rates = [level.observed for level in levels if level.observed is not None]
    if not rates:
        return "not measured"
    low, high = min(rates) / 1e9, max(rates) / 1e9
    return f"{low:.1f}" if round(low, 1) == round(high, 1) else f"{low:.1f} to {high:.1f}"
