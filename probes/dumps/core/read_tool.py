"""Reads outputs by the description of their tool. Wrapped rows, blank lines, "..." and Markdown are handled here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ..lines.markup import cells_of
from .columns import Row, cut_row, rows
from .matrix import cells, covers, damaged, empty_cell, truncation
from .part import Part
from .tables import Case, Columns, Line, Table, Tool, Values, case_of, compiled, flow_of, flows, named, rate_of, text_of

_GAP = re.compile(r"\[?(?:\.\.\.|…)|<snip", re.IGNORECASE)  # lines are omitted here
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_FUSED = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,8}")  # a number, or several without blanks between them


class _Reading(Struct):
    """The state of a run through the lines."""

    part: Part
    tool: Tool
    values: dict[str, str]
    refused: dict[tuple[int, str, str, str], NotChecked] = field(default_factory=dict)
    rows: bool = False  # the last line was a row
    begun: int | None = None  # the line that began the run, if the run has no rate yet
    # By peer access: the sender and the receiver of each rate of a square matrix
    measured: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    best: dict[str, tuple[int, Record]] = field(default_factory=dict)  # with Tool.one_of: by its value, with the case


def read_tool(part: Part, tool: Tool) -> Iterator[Record]:
    """The GPUs, rates and gaps of an output. Each reason why rates cannot be used is stated once."""
    reading = _Reading(part, tool, dict(tool.start))
    records = _read_table(reading, tool.table) if tool.table else _read_lines(reading)
    yield from _undisturbed(records) if tool.growing else records


def read_rows(part: Part, tool: Tool, found: Iterable[tuple[str, Values, Evidence]]) -> Iterator[Record]:
    """The rates and gaps of rows that are no lines of the part: members of JSON, for example.

    `found` has a text, further values and the evidence of each row. The text has the form of a row of the tool. It is
    empty if the values say all of it.
    """
    reading = _Reading(part, tool, {})
    for text, values, cite in found:
        row = _row(tool, text)
        if row or not text:
            yield from _rate(reading, {**tool.start, **values, **(named(row) if row else {})}, cite)
    yield from _end_run(reading, None)
    yield from reading.refused.values()


def through_host(records: Iterable[Record], pairs: Collection[tuple[str, ...]]) -> Iterator[Record]:
    """The records. Between these pairs of GPUs, which have no peer access, the driver copies through host memory.

    A pair with an empty first end is any pair with the second one.
    """
    for one in records:
        if isinstance(one, Observation) and isinstance(one.about, Flow):
            ends = one.about.ends
            if ends in pairs or any(("", end) in pairs for end in ends):
                one = replace(one, about=replace(one.about, via="host"))
        yield one


def _undisturbed(records: Iterable[Record]) -> Iterator[Record]:
    """The records without rates that are lower than the rate of a smaller size of the same copy.

    The rate of a link does not fall for larger copies, so another program disturbed the measurement (bandwidthTest on a
    healthy V100: 12.4 GB/s with 30 MB, 10.5 with 32 MB, 12.4 with 68 MB). The comparison restarts where the sizes
    restart.
    """
    most: dict[Flow, tuple[int, float]] = {}
    for one in records:
        if isinstance(one, Observation) and isinstance(one.about, Flow) and one.about.size:
            kind = replace(one.about, size=None)
            size, rate = most.get(kind, (0, 0.0))
            if one.about.size > size and one.value < rate:
                continue
            most[kind] = (one.about.size, one.value)
        yield one


def _read_lines(reading: _Reading) -> Iterator[Record]:
    part, tool = reading.part, reading.tool
    texts = part.text.split("\n")
    plain = [cells_of(text).strip() for text in texts]
    before = ""
    for number, text in enumerate(plain):
        line, found = _line(tool, text)
        if _GAP.match(text) and not tool.label:
            reading.values = dict(tool.start)
        if line and found:
            yield from _described(reading, number, texts[number], line, found)
            if line.matrix:
                yield from _matrix(reading, number, texts, line)
        elif row := _row(tool, text) or _row(tool, before + text) or _row(tool, f"{before} {text}"):
            before, reading.rows, values = "", True, {**reading.values, **named(row)}
            if _lacks_cells(tool, values):
                yield part.gap(number, f"{text[:60]!a} has fewer cells or more than the heading", "rate of copy")
                continue
            for one in _of_cells(tool, values):
                yield from _rate(reading, one, part.cite(number, texts[number]))
            continue
        elif tool.label and _is_damaged(reading, text):
            why = f"{text[:60]!a} has a number in a form that the tool does not print"
            yield part.gap(number, why, "rate of copy")
        elif reading.rows and not tool.label and any(map(str.isalpha, text)):
            reading.values.pop(tool.block, None)  # a damaged line
            reading.rows = False
        before = "" if line else text
    yield from _end_run(reading, None)
    yield from reading.refused.values()


def _read_table(reading: _Reading, table: Table) -> Iterator[Record]:
    part, tool = reading.part, reading.tool
    texts = part.text.split("\n")
    columns, unread = None, None
    for found in rows(part, table.heading, table.guess, extra=True, fused=table.fused):
        if isinstance(found, Row):
            cite = part.cite(found.number, texts[found.number])
            if columns is None or not found.cells:  # what is missing is stated at the heading
                reading.values |= {new: reading.values.pop(old, "") for old, new in table.once.items()}
                yield from _rate(reading, {**reading.values, "rate": "0"}, cite)
            columns = found.columns
            values = _of_columns(table, found)
            if values.get("unit") in tool.units and all(map(_NUMBER.fullmatch, found.cells)):
                yield from _rate(reading, {**reading.values, **values}, cite)
            continue
        number, text = found
        cells = text.split()
        line, words = _line(tool, text)
        if line and words:
            yield from _described(reading, number, texts[number], line, words)
        elif unread is None and len(cells) > 2 and all(map(_FUSED.fullmatch, cells)):
            unread = number
    yield from reading.refused.values()
    end = list(cut_row(part, columns or ()))
    yield from end
    if unread is not None and not end:
        lacks = "has no heading, so its unit is not known" if columns is None else "has not a value for each column"
        how = f"keep the whole output of the tool, with the line that begins with {table.first}"
        yield part.gap(unread, f"{texts[unread].strip()[:60]!a} {lacks}", how=how)


def _of_columns(table: Table, row: Row[Columns]) -> Values:
    """The values of a row: its cells, and the unit of the rate."""
    values = {"size": row.cells[0]} if row.cells else {}
    for (name, unit), cell in zip(row.columns, row.cells, strict=False):
        if value := table.values.get(name):
            values |= {value: cell, "unit": unit} if value == "rate" else {value: cell}
    return values


def _line(tool: Tool, text: str) -> tuple[Line | None, re.Match[str] | None]:
    for line, pattern in _line_patterns(tool.lines):
        if found := pattern.fullmatch(text):
            return line, found
    return None, None


def _row(tool: Tool, text: str) -> re.Match[str] | None:
    found = (pattern.fullmatch(text) for pattern in _row_patterns(tool.rows))
    return next((one for one in found if one), None) if text else None


@cache
def _line_patterns(lines: tuple[Line, ...]) -> list[tuple[Line, re.Pattern[str]]]:
    return [(line, compiled(line.pattern)) for line in lines]


@cache
def _row_patterns(several: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [compiled(row) for row in several]


def _of_cells(tool: Tool, values: Values) -> Iterator[Values]:
    """The values of each cell with a number in a row of a matrix; those of another row."""
    if "cells" not in values:
        yield values
        return
    columns = compiled(tool.label).finditer(values.get("columns", ""))
    for column, text in zip(columns, values["cells"].split(), strict=False):
        if text[0].isdecimal():
            yield {**values, **{f"to_{name}": label for name, label in named(column).items()}, "rate": text}


def _lacks_cells(tool: Tool, values: Values) -> bool:
    """Whether a row of a matrix, or its heading, has lost a cell. A row without its heading has no rate."""
    columns = compiled(tool.label).findall(values.get("columns", "")) if "cells" in values else []
    return bool(columns) and tool.block in values and len(values["cells"].split()) != len(columns)


def _is_damaged(reading: _Reading, text: str) -> bool:
    """Whether a line has the label of a row and a cell for each column, so that it is a row of the matrix."""
    columns = compiled(reading.tool.label).findall(reading.values.get("columns", ""))
    label = compiled(rf"{reading.tool.label}(?=\s)").match(text)
    cells = text[label.end() :].replace("->", " ").split() if label and columns else []
    return reading.tool.block in reading.values and len(cells) == len(columns) > 0


def _described(reading: _Reading, number: int, text: str, line: Line, found: re.Match[str]) -> Iterator[Record]:
    """Take the values of a line. A line about a GPU gives the GPU."""
    if "*" in line.forgets:
        yield from _end_run(reading, number)
    for name in reading.values.copy() if "*" in line.forgets else line.forgets:
        reading.values.pop(name, None)
    if "*" in line.forgets:
        reading.values.update(reading.tool.start)
    groups = named(found)
    # Below the columns of another matrix, whose title is missing, the rows of this one end.
    if {"columns"} & groups.keys() & reading.values.keys() if reading.tool.label else reading.rows:
        reading.values.pop(reading.tool.block, None)
        reading.rows = False
    reading.values.update(line.sets)
    reading.values.update(groups)
    if {"gpu", "name"} <= groups.keys():
        yield gpu_of(groups, reading.part.cite(number, text))


def gpu_of(groups: Values, cite: Evidence) -> Gpu:
    """The GPU with the number `gpu`, the name, and perhaps the domain, bus, slot and function of its address."""
    numbers = (int(groups.get(name, "0"), 16) for name in ("domain", "bus", "slot"))
    address = "{:04x}:{:02x}:{:02x}.".format(*numbers) + groups.get("function", "0") if "bus" in groups else None
    cites = {"name": cite, "address": cite} if address else {"name": cite}
    return Gpu(key=f"gpu{int(groups['gpu'])}", name=groups["name"], address=address, cites=cites)


def _matrix(reading: _Reading, number: int, texts: Sequence[str], line: Line) -> Iterator[Record]:

    def ends(text: str) -> bool:
        return _line(reading.tool, text)[0] is not None

    part = reading.part
    found = tuple(cells(texts, number + 1, ends))
    for flow, value, cell in flows(reading.tool, reading.values, found):
        yield part.rate(flow, value, part.cite(cell.line, texts[cell.line]))
    measured = reading.measured.setdefault(reading.values.get("peers", ""), set())
    if end := truncation(texts, number + 1, line.square or "device_to_device" in reading.values.get("test", "")):
        known = line.square and end[1].startswith("after") and covers(measured, found)
        yield replace(part.cut(*end), reason=Reason.NOT_MEASURED) if known else part.cut(*end)
    measured |= {(one.row, one.column) for one in found}
    empty = empty_cell(texts, number + 1, ends) if line.square else None
    if not end and (wrong := damaged(texts, number + 1, ends) or empty) is not None:
        why = f"{texts[wrong].strip()[:60]!a} {'has a copy without a rate' if wrong == empty else 'is damaged'}"
        yield part.gap(wrong, why, "rate of copy", how="keep the whole output of the tool, and repeat the test")


def _end_run(reading: _Reading, begun: int | None) -> Iterator[Record]:
    """The rates of a run that has one for each value, or its gap. `begun` is the line that begins the next run."""
    yield from (record for _, record in reading.best.values())
    if reading.begun is not None and reading.tool.no_row:
        yield _gap(reading, reading.tool.no_row, reading.values, reading.part.where(reading.begun))
    reading.best, reading.begun = {}, begun


def _rate(reading: _Reading, values: Values, cite: Evidence) -> Iterator[Record]:
    """The rate of a row. If it cannot be used, the reason is kept once for each subject."""
    tool = reading.tool
    lacking = any(name not in values for name in tool.needs)
    case = case_of(tool, values) or (Case(refused=tool.lacks) if lacking else None)
    if not case or (case.refused == "" and not case.ends):
        return
    if case.refused or lacking:
        refused = replace(case, refused=case.refused or tool.lacks, subject="", reason=Reason.UNREADABLE)
        record: Record = _gap(reading, refused if lacking else case, values, cite.source)
    else:
        flow, value = flow_of(tool, values, case), float(values["rate"])
        if not flow or not value or (values.get("size") and not flow.size):
            return
        record = reading.part.rate(flow, rate_of(tool, values, case), cite, case.quantity)
    reading.begun = None
    place = tool.cases.index(case) if case in tool.cases else -1
    if tool.one_of:
        key = values.get(tool.one_of, "")
        if key not in reading.best or place <= reading.best[key][0]:
            reading.best[key] = place, record
    elif isinstance(record, NotChecked):
        reading.refused.setdefault((place, record.what, record.subject, record.detail), record)
    else:
        yield record


def _gap(reading: _Reading, case: Case, values: Values, path: str) -> NotChecked:
    why, what, subject = (text_of(reading.tool, text, values) for text in (case.refused, case.what, case.subject))
    how = case.how or "keep the whole output of the tool"
    return reading.part.gap(path, why, what, case.reason, how, subject or "node")
