"""Reads the tables and matrices of tools by a description: their lines, the rows with rates, and what a row means.

A line sets values for the rows below it. The values of a row select a case, which gives the ends of the flow or the
reason why the row is no rate of a link. Wrapped rows, blank lines, "..." and Markdown are handled here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Record
from ....models.facts.units import GIB, KIB, MIB
from ..lines.markup import cells_of
from .matrix import Cell, cells, damaged, empty_cell, truncation
from .part import Part

Values: TypeAlias = Mapping[str, str]
_GAP = re.compile(r"\[?(?:\.\.\.|…)|<snip", re.IGNORECASE)  # lines are omitted here
_SIZES = {"": 1, "By": 1, "kB": KIB, "K": KIB, "M": MIB, "G": GIB}


class Line(Struct, frozen=True, eq=False):
    """A line that is no row. Its named groups are values. With the groups gpu and name it describes a GPU."""

    pattern: str
    forgets: tuple[str, ...] = ()  # values that end here; "*": all
    sets: Values = field(default_factory=dict)  # values that the line implies
    matrix: bool = False  # a matrix follows: its rows have the values row and column
    square: bool = False  # the matrix has a row for each column


class Case(Struct, frozen=True, eq=False):
    """What rows with these values mean. The texts contain names of values in braces."""

    ends: tuple[str, ...] = ()  # sender and receiver; (): the row is no rate of a link
    when: Values = field(default_factory=dict)  # expressions for values; the value "" is absent
    op: str = "copy"
    via: str = ""
    both: str = ""  # the opposite direction runs as well: "sum" if the rate is that of both, else "each"
    together: bool = False  # all flows of the matrix run at the same time
    refused: str = ""  # why the rate cannot be used
    reason: Reason = Reason.NOT_MEASURED
    how: str = ""
    subject: str = ""
    what: str = "rate of copy"


class Tool(Struct, frozen=True, eq=False):
    """The description of a tool. The first line, row and case that fit count."""

    lines: tuple[Line, ...]
    cases: tuple[Case, ...]
    rows: tuple[str, ...] = ()  # expressions with the groups rate, and perhaps unit, size and size_unit
    units: Mapping[str, float] = field(default_factory=dict)  # bytes per second, by the value unit
    meanings: Mapping[str, Values] = field(default_factory=dict)  # replaces values: {"engine": {"SM": "-sm"}}
    start: Values = field(default_factory=dict)  # the values before the first line
    least: float = 0.0  # the smallest rate with enough digits, in the unit of the row
    needs: tuple[str, ...] = ()  # a row without these values is a gap
    lacks: str = ""  # the reason that this gap states
    block: str = ""  # the value that the first line of each block of rows sets: another line after rows ends the block
    # One rate for each run (a Line that forgets "*" begins a run) and each value of this name: that of the first case
    one_of: str = ""
    no_row: Case | None = None  # the gap of a run without a rate


class _Reading(Struct):
    """The state of a run through the lines."""

    part: Part
    tool: Tool
    values: dict[str, str]
    refused: dict[tuple[int, str, str, str], NotChecked] = field(default_factory=dict)
    rows: bool = False  # the last line was a row
    begun: int | None = None  # the line that began the run, if the run has no rate yet
    best: dict[str, tuple[int, Record]] = field(default_factory=dict)  # with Tool.one_of: by its value, with the case


def read_tool(part: Part, tool: Tool) -> Iterator[Record]:
    """The GPUs, rates and gaps of an output. Each reason why rates cannot be used is stated once."""
    reading = _Reading(part, tool, dict(tool.start))
    texts = part.text.split("\n")
    plain = [cells_of(text).strip() for text in texts]
    before = ""
    for number, text in enumerate(plain):
        line, found = _line(tool, text)
        if _GAP.match(text):
            reading.values = dict(tool.start)
        if line and found:
            yield from _described(reading, number, texts[number], line, found)
            if line.matrix:
                yield from _matrix(reading, number, texts, line)
        elif row := _row(tool, text) or _row(tool, before + text) or _row(tool, f"{before} {text}"):
            before, reading.rows = "", True
            yield from _rate(reading, {**reading.values, **_named(row)}, part.cite(number, texts[number]), number)
            continue
        elif reading.rows and any(map(str.isalpha, text)):
            reading.values.pop(tool.block, None)  # a damaged line
            reading.rows = False
        before = "" if line else text
    yield from _end_run(reading, None)
    yield from reading.refused.values()


def _line(tool: Tool, text: str) -> tuple[Line | None, re.Match[str] | None]:
    for line, pattern in _patterns(tool)[0]:
        if found := pattern.fullmatch(text):
            return line, found
    return None, None


def _row(tool: Tool, text: str) -> re.Match[str] | None:
    found = (pattern.fullmatch(text) for pattern in _patterns(tool)[1])
    return next((one for one in found if one), None) if text else None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _patterns(tool: Tool) -> tuple[list[tuple[Line, re.Pattern[str]]], list[re.Pattern[str]]]:
    return [(line, _compiled(line.pattern)) for line in tool.lines], [_compiled(row) for row in tool.rows]


def _named(found: re.Match[str]) -> dict[str, str]:
    return {name: text for name, text in found.groupdict().items() if text is not None}


def _described(reading: _Reading, number: int, text: str, line: Line, found: re.Match[str]) -> Iterator[Record]:
    """Take the values of a line. A line about a GPU gives the GPU."""
    if "*" in line.forgets:
        yield from _end_run(reading, number)
    for name in reading.values.copy() if "*" in line.forgets else line.forgets:
        reading.values.pop(name, None)
    if "*" in line.forgets:
        reading.values.update(reading.tool.start)
    named = _named(found)
    if reading.rows:
        reading.values.pop(reading.tool.block, None)
        reading.rows = False
    reading.values.update(line.sets)
    reading.values.update(named)
    if {"gpu", "name"} <= named.keys():
        cite = reading.part.cite(number, text)
        address = _address(named)
        cites = {"name": cite, "address": cite} if address else {"name": cite}
        yield Gpu(key=f"gpu{int(named['gpu'])}", name=named["name"], address=address, cites=cites)


def _address(named: Values) -> str | None:
    if "bus" not in named:
        return None
    numbers = (int(named.get(name, "0"), 16) for name in ("domain", "bus", "slot"))
    return "{:04x}:{:02x}:{:02x}.".format(*numbers) + named.get("function", "0")


def _matrix(reading: _Reading, number: int, texts: Sequence[str], line: Line) -> Iterator[Record]:

    def ends(text: str) -> bool:
        return _line(reading.tool, text)[0] is not None

    found = tuple(cells(texts, number + 1, ends))
    for flow, value, cell in flows(reading.tool, reading.values, found):
        yield reading.part.rate(flow, value, reading.part.cite(cell.line, texts[cell.line]))
    if end := truncation(texts, number + 1, line.square or "device_to_device" in reading.values.get("test", "")):
        yield reading.part.cut(*end)
    empty = empty_cell(texts, number + 1, ends) if line.square else None
    if not end and (wrong := damaged(texts, number + 1, ends) or empty) is not None:
        why = f"{texts[wrong].strip()[:60]!a} {'has a copy without a rate' if wrong == empty else 'is damaged'}"
        how = "keep the whole output of the tool, and repeat the test"
        path = reading.part.where(wrong)
        yield NotChecked(what="rate of copy", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=how)


def flows(tool: Tool, values: Values, found: Sequence[Cell]) -> Iterator[tuple[Flow, float, Cell]]:
    """The flow and the rate in bytes per second of each cell of a matrix."""
    every: list[tuple[Flow, float, Cell, Case]] = []
    for cell in found:
        named = {**values, "row": str(cell.row), "column": str(cell.column), "rate": repr(cell.value)}
        case = case_of(tool, named)
        flow = case and _flow(tool, named, case)
        if case and flow and len(set(flow.ends)) > 1:
            every.append((flow, _bytes(tool, named, case), cell, case))
    for flow, value, cell, case in every:
        others = tuple(other.ends for other, *_ in every if other.ends != flow.ends) if case.together else flow.beside
        yield Flow(flow.op, flow.ends, flow.size, flow.via, others), value, cell


def case_of(tool: Tool, values: Values) -> Case | None:
    """The case of a row with these values. None: the row means nothing here."""
    return next((case for case in tool.cases if _fits(case, values)), None)


def _fits(case: Case, values: Values) -> bool:
    return all(_compiled(text).fullmatch(values.get(name, "")) for name, text in case.when.items())


def flow_of(tool: Tool, values: Values) -> Flow | None:
    """The flow of a row with these values, if it is the rate of a link."""
    case = case_of(tool, values)
    return _flow(tool, values, case) if case and not case.refused else None


def _flow(tool: Tool, values: Values, case: Case) -> Flow | None:
    ends = tuple(_text(tool, end, values) for end in case.ends)
    if not ends:
        return None
    size = int(values.get("size") or 0) * _SIZES[values.get("size_unit", "")] * int(values.get("size_width", 1))
    beside = (ends[::-1],) if case.both else ()
    return Flow(_text(tool, case.op, values), ends, size or None, _text(tool, case.via, values), beside)


def _bytes(tool: Tool, values: Values, case: Case) -> float:
    unit = tool.units[values.get("unit", "")]
    return float(values["rate"]) / (2 if case.both == "sum" else 1) * unit


def _text(tool: Tool, template: str, values: Values) -> str:
    """The template with its values. Numbers lose leading zeros."""
    meant = {name: tool.meanings.get(name, {}).get(text, text) for name, text in values.items()}
    return template.format_map({name: str(int(text)) if text.isdecimal() else text for name, text in meant.items()})


def _end_run(reading: _Reading, begun: int | None) -> Iterator[Record]:
    """The rates of a run that has one for each value, or its gap. `begun` is the line that begins the next run."""
    yield from (record for _, record in reading.best.values())
    if reading.begun is not None and reading.tool.no_row:
        yield _gap(reading, reading.tool.no_row, reading.values, reading.begun)
    reading.best, reading.begun = {}, begun


def _rate(reading: _Reading, values: Values, cite: Evidence, number: int) -> Iterator[Record]:
    """The rate of a row. If it cannot be used, the reason is kept once for each subject."""
    tool = reading.tool
    lacking = any(name not in values for name in tool.needs)
    case = case_of(tool, values) or (Case(refused=tool.lacks) if lacking else None)
    if not case or (case.refused == "" and not case.ends):
        return
    if case.refused or lacking:
        refused = replace(case, refused=case.refused or tool.lacks, subject="", reason=Reason.UNREADABLE)
        record: Record = _gap(reading, refused if lacking else case, values, number)
    else:
        flow, value = _flow(tool, values, case), float(values["rate"])
        if not flow or not value or value < tool.least or (values.get("size") and not flow.size):
            return
        record = reading.part.rate(flow, _bytes(tool, values, case), cite)
    reading.begun = None
    if tool.one_of:
        place, key = tool.cases.index(case), values.get(tool.one_of, "")
        if key not in reading.best or place <= reading.best[key][0]:
            reading.best[key] = place, record
    elif isinstance(record, NotChecked):
        reading.refused.setdefault((id(case), record.what, record.subject, record.detail), record)
    else:
        yield record


def _gap(reading: _Reading, case: Case, values: Values, number: int) -> NotChecked:
    return NotChecked(
        what=_text(reading.tool, case.what, values),
        subject=_text(reading.tool, case.subject, values) or "node",
        reason=case.reason,
        path=reading.part.where(number),
        detail=_text(reading.tool, case.refused, values),
        how=case.how or "keep the whole output of the tool",
    )
