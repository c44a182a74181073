"""Tables of rates with the adapters of one machine as rows and those of another one as columns.

"| node1/node2 | mlx5_0 | mlx5_1 |" over "| mlx5_0 | timeout | 8402.31 |". Nothing says which combinations are equal, so
the slowest one is only compared with the fastest one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ....models.facts.network_paths import EXPECTED, NodePair
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from .rows import factor_of
from .words import NIC, UNIT

_APART = r"[ \t|]{1,20}"
_FAILED = r"(?:time[ -]?out|timed[ ]out|fail(?:ed|s)?|hangs?|hung|err(?:or)?)"
_CELL = rf"(?:[0-9]{{1,6}}(?:\.[0-9]{{1,3}})?(?:[ ]?{UNIT})?|{_FAILED}|-{{1,3}}|x|n/?a)"
_END = r"[ \t|]{0,20}$"
_CORNER = rf"(?:(?!{NIC})[^\s|]{{1,40}}{_APART}){{0,3}}"
_HEADING = rf"[ \t|]{{0,20}}{_CORNER}{NIC}(?:{_APART}{NIC}){{1,15}}{_END}"
_ROW = rf"[ \t|]{{0,20}}{NIC}(?:{_APART}{_CELL}){{2,16}}{_END}"
_RULE = r"(?:[ \t|:+=-]{3,200}\n)?"
_TABLE = rf"{_HEADING}\n{_RULE}{_ROW}"
_TITLE = rf"(?=[^\n]{{0,80}}(?<![A-Za-z]){UNIT}(?![\w]))[^\n]{{1,100}}\n(?:[ \t]*\n)?"
_RATED = rf"(?=(?:[^\n]{{0,200}}\n){{0,2}}?[^\n]{{0,200}}?(?<![A-Za-z]){UNIT}(?![\w]))"  # the heading or the first row
BEGIN = rf"^(?i:(?={_TITLE}{_TABLE})[^\n]{{0,80}}?{UNIT}|(?={_TABLE}){_RATED}[^\n]{{0,120}}?{NIC})"
_FAR = 0.7  # of the fastest: half of the lanes, or the generation before
_FEWEST = 3  # rates


class _Table(Struct, frozen=True):
    """The lines of a table, of its title and of its heading; the cells by the number of their row; bytes per unit."""

    lines: frozenset[int]
    cells: Mapping[int, Sequence[str]]
    factor: float | None


class AdapterTables(Struct, frozen=True):
    """The lines of the tables, and by its line the rate that is farthest below the fastest of its table."""

    lines: frozenset[int]
    slowest: dict[int, NodePair]


def read_tables(part: Part) -> AdapterTables:
    """The tables of a part."""
    tables = list(_tables(part))
    pairs = [found for table in tables for found in _slowest(part, table)]
    pairs.sort(key=lambda found: (found[1].rate or 0) / (found[1].others or 1))
    return AdapterTables(frozenset[int]().union(*(table.lines for table in tables)), dict(pairs[:1]))


def _tables(part: Part) -> Iterator[_Table]:
    texts = list(part.lines())
    for place, (number, line) in enumerate(texts):
        if not ignoring_case(_HEADING).fullmatch(line):
            continue
        rows = dict[int, str]()
        for other, text in texts[place + 1 :]:
            if ignoring_case(_ROW).fullmatch(text):
                rows[other] = text
            elif any(map(str.isalnum, text)):
                break
        above = [(other, text) for other, text in texts[max(place - 2, 0) : place] if text.strip()][-1:]
        titled = [(other, text) for other, text in above if _unit(text)]
        units = [one[0] for text in (line, *(text for _, text in titled), *rows.values()) if (one := _unit(text))]
        cells = {other: ignoring_case(rf"(?<![^\s|]){_CELL}(?![^\s|])").findall(text) for other, text in rows.items()}
        if rows:
            lines = frozenset((number, *rows, *(other for other, _ in titled)))
            yield _Table(lines, cells, factor_of(units[0]) if units else None)


def _unit(text: str) -> re.Match[str] | None:
    return ignoring_case(rf"(?<![A-Za-z]){UNIT}(?![\w])").search(text)


def _slowest(part: Part, table: _Table) -> Iterator[tuple[int, NodePair]]:
    """The slowest combination, in the row of one that failed if there is one. Nothing if all reach equal rates."""
    rates = [
        (float(found[0]), number)
        for number, cells in table.cells.items()
        for cell in cells
        if (found := re.match(r"[0-9]+(?:\.[0-9]+)?", cell)) and float(found[0])
    ]
    failed = [number for number, cells in table.cells.items() if any(map(ignoring_case(_FAILED).fullmatch, cells))]
    if table.factor is None or len(rates) + len(failed) < _FEWEST or len(rates) < _FEWEST - 1:
        return
    (low, row), (high, best) = min(rates), max(rates)
    if low < _FAR * high or failed:
        texts = dict(part.lines())
        cites = {
            name: part.cite(at, texts[at]) for name, at in (("rate", failed[0] if failed else row), ("others", best))
        }
        rate = low * table.factor if low < _FAR * high else 0.0
        yield row, NodePair(key=EXPECTED, rate=rate, others=high * table.factor, cites=cites)
