"""Tables of rates with the GPUs in the heading and in the first column, as people paste them from a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from ....models.facts.records import Flow, Observation
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from .rows import factor_of
from .words import UNIT

_GPU = r"gpu[ _#]?[0-9]{1,3}"
_CELL = rf"(?:[0-9]{{1,5}}(?:\.[0-9]{{1,3}})?(?:[ ]?{UNIT})?|-{{1,3}}|x|n/?a|nan|\\|/)"
_CORNER = r"(?:(?!gpu[0-9])[^\s0-9]{1,24}[ \t]+){0,3}"
_HEADING = rf"[ \t]{{0,40}}{_CORNER}{_GPU}(?:[ \t]{{1,40}}{_GPU}){{1,31}}[ \t]{{0,20}}$"
_ROW = rf"[ \t]{{0,20}}{_GPU}(?:[ \t]{{1,40}}{_CELL}){{2,32}}[ \t]{{0,20}}$"
_RATED = rf"(?=[^\n]{{0,200}}[ \t](?:[0-9]{{2,5}}|[0-9]{{1,5}}\.[0-9]{{1,3}})(?:[ ]?{UNIT})?(?:[ \t]|$))"
_TABLE = rf"{_HEADING}\n(?:[ \t|:+=-]{{3,200}}\n)?{_RATED}{_ROW}"
_TITLE = rf"(?=[^\n]{{0,80}}(?<![\w.])(?:{UNIT})(?![\w]))[^\n]{{1,100}}\n(?:[ \t]*\n)?"
_IN_TABLE = (
    rf"(?=(?:[^\n]{{0,200}}\n){{0,2}}?[^\n]{{0,200}}?(?<![A-Za-z]){UNIT}(?![\w]))"  # its heading or its first row
)
# Tables without a unit are of other tools: weights and latencies of links.
_BELOW_TITLE = r"(?:(?<=/s\)\n)|(?<=ps\)\n)|(?<=/s\n)|(?<=/s:\n))"
BEGIN = (
    rf"^(?i:{_BELOW_TITLE}(?={_TABLE})[^\n]{{0,80}}?gpu|(?={_TABLE}){_IN_TABLE}[^\n]{{0,80}}?gpu"
    rf"|(?={_TITLE}{_TABLE})[^\n]{{0,80}}?(?:{UNIT}))"
)


class Square(Struct):
    """The rates of the tables of a part, the lines of these tables, and the lines of tables without a unit."""

    rates: list[Observation] = field(default_factory=list)
    lines: set[int] = field(default_factory=set)
    bare: list[int] = field(default_factory=list)


def squares(part: Part) -> Square:
    """The tables of a part. Rows are the senders."""
    found, lines = Square(), list(part.lines())
    for place, (number, line) in enumerate(lines):
        if number in found.lines or not ignoring_case(_HEADING).match(line):
            continue
        below = _below(lines[place + 1 :])
        rows = {other: text for other, text in below.items() if ignoring_case(_ROW).match(text)}
        if not any(ignoring_case(_RATED).match(text) for text in rows.values()):
            continue
        title = next((text for _, text in reversed(lines[max(place - 2, 0) : place]) if text.strip()), "")
        unit = next((one[0] for text in (line, title, *rows.values()) if (one := _unit(text))), "")
        found.lines |= {number, *below}
        found.bare += [] if factor_of(unit) else [number]
        for other, text in rows.items():
            found.rates += _rates(part, _gpus(line), other, text, factor_of(unit) or 0.0)
    return found


def _below(lines: list[tuple[int, str]]) -> Mapping[int, str]:
    """The rows below a heading, and rules between them."""
    found: dict[int, str] = {}
    for number, line in lines:
        if any(map(str.isalnum, line)) and not ignoring_case(_ROW).match(line):
            break
        found[number] = line
    return found


def _unit(text: str) -> re.Match[str] | None:
    return ignoring_case(rf"(?<![A-Za-z]){UNIT}(?![\w])").search(text)


def _gpus(text: str) -> list[str]:
    """The keys of the GPUs that a line names."""
    return [f"gpu{int(found[0])}" for one in ignoring_case(_GPU).findall(text) if (found := re.search("[0-9]+", one))]


def _rates(part: Part, columns: list[str], number: int, line: str, factor: float) -> Iterator[Observation]:
    """The rates of a row. The cell of the GPU itself is that of its own memory, or empty."""
    sender, cells = _gpus(line)[0], re.split(_GPU, line, maxsplit=1, flags=re.IGNORECASE)[1]
    values = ignoring_case(rf"(?<!\S){_CELL}(?!\S)").findall(cells)
    if len(values) != len(columns):
        return
    for column, text in zip(columns, values, strict=True):
        value = re.match(r"[0-9]+(?:\.[0-9]+)?", text)
        if value and factor and column != sender and float(value[0]):
            yield part.rate(Flow("copy", (sender, column)), float(value[0]) * factor, part.cite(number, line))
