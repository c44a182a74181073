"""Descriptions of the tables and matrices of tools: their lines, the rows with rates, and what a row means.

A line sets values for the rows below it. The values of a row select a case, which gives the ends of the flow or the
reason why the row is no rate of a link. read_tool.py reads the outputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct, field

from ....models.facts.reason import Reason
from ....models.facts.records import Flow
from ....models.facts.units import GIB, KIB, MIB
from .matrix import Cell

Values: TypeAlias = Mapping[str, str]
Columns: TypeAlias = tuple[tuple[str, str], ...]  # name and unit of each column of a table
_SIZES = {"": 1, "By": 1, "kB": KIB, "K": KIB, "k": KIB, "M": MIB, "m": MIB, "G": GIB, "g": GIB}


class Line(Struct, frozen=True, eq=False):
    """A line that is no row. Its named groups are values. With the groups gpu and name it describes a GPU; with the
    group columns it is the heading of a matrix whose rows have the group cells.
    """

    pattern: str
    forgets: tuple[str, ...] = ()  # values that end here; "*": all
    sets: Values = field(default_factory=dict)  # values that the line implies
    matrix: bool = False  # a matrix of numbered GPUs follows (matrix.py): its cells have the values row and column
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
    quantity: str = "rate"  # "latency": in seconds


class Table(Struct, frozen=True, eq=False):
    """A table whose heading names its columns. Each row consists of numbers; the first number is the size."""

    heading: Callable[[str], Columns | None]  # the columns that a line names
    guess: Callable[[tuple[str, ...]], Columns | None]  # the columns of a row without a heading
    values: Values  # names of columns, and the value that each sets. The column of the rate gives the unit, too.
    once: Values = field(default_factory=dict)  # values of the next heading only, and the names that they get there
    first: str = ""  # the first name of the heading
    fused: re.Pattern[str] | None = None  # the end of a cell to which the next one is joined


class Tool(Struct, frozen=True, eq=False):
    """The description of a tool. The first line, row and case that fit count."""

    lines: tuple[Line, ...]
    cases: tuple[Case, ...]
    # Expressions with the groups rate, and perhaps unit, size and size_unit. With the group cells instead of rate: a
    # row of a matrix. Each cell is a rate with the values of its column.
    rows: tuple[str, ...] = ()
    table: Table | None = None  # instead of rows
    label: str = ""  # the name of a row or column of a matrix; its groups are values
    units: Mapping[str, float] = field(default_factory=dict)  # bytes per second, by the value unit
    meanings: Mapping[str, Values] = field(default_factory=dict)  # replaces values: {"engine": {"SM": "-sm"}}
    start: Values = field(default_factory=dict)  # the values before the first line
    needs: tuple[str, ...] = ()  # a row without these values is a gap
    lacks: str = ""  # the reason that this gap states
    block: str = ""  # the value that the first line of each block of rows sets: another line after rows ends the block
    # One rate for each run (a Line that forgets "*" begins a run) and each value of this name: that of the first case
    one_of: str = ""
    no_row: Case | None = None  # the gap of a run without a rate
    growing: bool = False  # rows are copies of growing sizes, whose rates do not fall


def flows(tool: Tool, values: Values, found: Sequence[Cell]) -> Iterator[tuple[Flow, float, Cell]]:
    """The flow and the rate in bytes per second of each cell of a matrix."""
    every: list[tuple[Flow, float, Cell, Case]] = []
    for cell in found:
        named = {**values, "row": str(cell.row), "column": str(cell.column), "rate": repr(cell.value)}
        case = case_of(tool, named)
        flow = case and flow_of(tool, named, case)
        if case and flow:
            every.append((flow, rate_of(tool, named, case), cell, case))
    for flow, value, cell, case in every:
        others = tuple(other.ends for other, *_ in every if other.ends != flow.ends) if case.together else flow.beside
        yield Flow(flow.op, flow.ends, flow.size, flow.via, others), value, cell


def case_of(tool: Tool, values: Values) -> Case | None:
    """The case of a row with these values. None: the row means nothing here."""
    return next((case for case in tool.cases if _fits(case, values)), None)


def _fits(case: Case, values: Values) -> bool:
    return all(compiled(text).fullmatch(values.get(name, "")) for name, text in case.when.items())


def flow_of(tool: Tool, values: Values, case: Case) -> Flow | None:
    """The flow of a row. None: the row is no rate of a link, or a copy inside a GPU."""
    ends = tuple(text_of(tool, end, values) for end in case.ends)
    if not ends or len(ends) > len(set(ends)):
        return None
    factor = _SIZES[values.get("size_unit", "")] * int(values.get("size_width", 1))
    size = int(float(values.get("size") or 0) * factor)
    if tool.label and size % 1000 and size % KIB:
        size = 0  # of no test of this kind: a number that is cut
    beside = (ends[::-1],) if case.both else ()
    return Flow(text_of(tool, case.op, values), ends, size or None, text_of(tool, case.via, values), beside)


def rate_of(tool: Tool, values: Values, case: Case) -> float:
    """The rate of a row in one direction, in bytes per second."""
    unit = tool.units[values.get("unit", "")]
    return float(values["rate"]) / (2 if case.both == "sum" else 1) * unit


def text_of(tool: Tool, template: str, values: Values) -> str:
    """The template with its values. Numbers lose leading zeros."""
    meant = {name: tool.meanings.get(name, {}).get(text, text) for name, text in values.items()}
    return template.format_map({name: str(int(text)) if text.isdecimal() else text for name, text in meant.items()})


@lru_cache(maxsize=4096)  # some descriptions depend on the devices of an output
def compiled(pattern: str) -> re.Pattern[str]:
    """The expression of a description."""
    return re.compile(pattern)


def named(found: re.Match[str]) -> dict[str, str]:
    """The values of the groups that matched."""
    return {name: text for name, text in found.groupdict().items() if text is not None}
