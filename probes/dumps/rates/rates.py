"""Rates as people report them, by line or as a table: ends, number, unit, and conditions.

No tool writes these lines. A row that lacks its unit or its ends is a gap, because any of its readings can be wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.network_paths import NodePair
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.matrix import with_gpus
from ..core.part import Part
from ..lines.markup import cells_of
from ..lines.shapes import shape
from . import adapter_tables, host_pairs, sizes, square
from . import words as vocabulary
from .claims import LISTED, SPOKEN, UNITLESS, claims, entries
from .contrasts import is_limited
from .flows import PATHS, flows_of, is_disk, is_nic, path_rates
from .rows import Header, RateRow, header_of, is_change, row_of, single_node
from .shorthand import rows_of
from .stated_limits import LIMITED

_UNIT = vocabulary.UNIT
_TABLES = f"{vocabulary.BEGIN}|{square.BEGIN}|{sizes.BEGIN}|{adapter_tables.BEGIN}|{host_pairs.BEGIN}"
BEGIN = rf"(?:{_TABLES}|^(?i:(?=(?:{SPOKEN}|{LISTED}))[^\n]{{0,200}}?{_UNIT}|{UNITLESS}|{LIMITED}))"
_BETWEEN = 3  # lines
_FEWEST_NODES = 4  # nodes whose own rates are compared
_HOW = "write each row as 'gpu0 -> gpu1: 48.1 GB/s'"
_GAPS = {
    "unit": "the number has no unit",
    "bits": "the unit can mean bits or bytes",
    "ends": "the row does not name both ends",
    "sum": "the row does not say whether the number is the sum of its flows or the rate of each",
    "numbers": "the row has several numbers, and nothing says what differs",
    "nics": "both ends are network adapters, and the row does not name their machines",
    "nodes": "the rates of fewer than four nodes do not show which of them is slow",
    "path": "the row names a kind of path and not its ends",
    "words": "the row has words or signs that are not understood",
    "other": "the rate of a link is compared with a rate that something else can limit, or that was expected",
}
_REASONS = {"invalid": Reason.NOT_MEASURED} | dict.fromkeys(("words", "numbers", "other"), Reason.INCOMPLETE)
_INVALID = "the row says how it was measured, and this does not show the rate of a link"


class _Report(Struct):
    """What the rows of a part gave so far. Nodes and gaps with the numbers of their lines."""

    part: Part
    records: list[Record] = field(default_factory=list)
    nodes: dict[str, tuple[NodePair, int]] = field(default_factory=dict)
    gaps: dict[str, list[int]] = field(default_factory=dict)
    table: Header = Header()  # the last heading, and the line of its last row
    last: int = 0


def read(part: Part) -> Iterator[Record]:
    """The rates of flows, of pairs of nodes and of single nodes, and one NotChecked for each kind of gap."""
    report, header, way, in_table = _Report(part), Header(), "", False
    table, adapters = square.squares(part), adapter_tables.read_tables(part)
    report.records += table.rates
    others = [number for number, line in part.lines() if is_limited(line)]
    report.gaps |= {gap: numbers for gap, numbers in (("unit", table.bare), ("other", others)) if numbers}
    texts = {number: line for number, line in part.lines() if number not in table.lines | adapters.lines}
    rows = [(number, row) for number, line in texts.items() for row in _rows(line)]
    lines = [(number, row, vocabulary.words(_cells(row.lstrip(" \t>")))) for number, row in rows]
    spoken = _spoken(part, lines) | adapters.slowest
    change = is_change({word.kind for word in words or ()} for _, _, words in lines)
    single = single_node(words for _, _, words in lines if words)
    for number, line, words in lines:
        way = vocabulary.way_of(line) or way
        below = _row_of_machine(line, header)
        words = below or words
        if not words:
            if number not in spoken and vocabulary.is_rated(line):
                report.gaps.setdefault("words", []).append(number)
            other = "|" not in line and in_table  # another program's line between the rows of a table
            header = Header() if not other and any(map(str.isalnum, line)) else header
            continue
        if single:
            words = tuple(word for word in words if word.kind != "name")
        if found := header_of(words):
            header, in_table = found, "|" in line
            report.table, report.last = header, number
        elif any(word.kind in ("number", "unit") for word in words):
            header = Header() if header.factor and any(word.kind == "unit" for word in words) else header
            row, header = _row(report, words, header, number)
            row.marks |= {way} if way and not row.pairs and not row.marks & {"upward", "downward"} else set()
            row.marks |= {"change"} if change else set()
            row.machine = below is not None
            _take(report, row, header, number, part.cite(number, line if line in texts[number] else texts[number]))
    yield from spoken.values()
    yield from with_gpus(report.records)
    yield from _nodes(report)
    yield from _gaps(report)


def _rows(line: str) -> list[str]:
    """The rows of a line, or of a range of GPUs."""
    rows = rows_of(line)
    return rows if len(rows) > 1 else [row for some in entries(rows[0]) for row in rows_of(some)]


def _spoken(part: Part, lines: Sequence[tuple[int, str, Sequence[vocabulary.Word] | None]]) -> dict[int, NodePair]:
    """The rates that the text compares with others, by the number of their lines."""
    compared = {number for number, _, words in lines if words and _is_compared(words)}
    found = {number: one for number, one in claims(part) if number not in compared} | dict(sizes.comparisons(part))
    found |= dict(host_pairs.host_pairs(part))
    return dict(sorted(found.items(), key=lambda one: one[1].link is None))  # of several, the first one counts


def _is_compared(words: Sequence[vocabulary.Word]) -> bool:
    """Whether a row names its ends and gives the expected number itself: it is more than a claim."""
    row = row_of(words, Header())
    return bool((row.pairs or row.alone) and "wanted" in row.marks)


def _row(report: _Report, words: Sequence[vocabulary.Word], header: Header, number: int) -> tuple[RateRow, Header]:
    """The row and its heading, also behind a few lines of another program that wrote to the same terminal."""
    row = row_of(words, header)
    if _gap(row) == "unit" and number - report.last <= _BETWEEN and row_of(words, report.table).rates:
        row, header = row_of(words, report.table), report.table
    if header is report.table and row.rates:
        report.last = number
    return row, header


def _cells(line: str) -> str:
    """The line with blanks between its cells, also if commas separate them."""
    return line.replace(",", " | ") if line.count(",") > 1 and " " not in line.strip() else cells_of(line)


def _row_of_machine(line: str, header: Header) -> tuple[vocabulary.Word, ...] | None:
    """The words of a row below a column of machines: its first cell is a name of any form."""
    found = re.match(r"[ \t|>*`]{0,20}([A-Za-z0-9][\w.-]{0,62})[ \t*`]{0,8}(?:[|,:]|[ \t])(.*)", line)
    if not (found and vocabulary.names_machines(header.texts)) or is_nic(found[1].lower()):
        return None
    rest = vocabulary.words(_cells(f"{found[2]} "))
    return (vocabulary.Word("name", found[1], ""), *rest) if rest and rest[0].kind == "number" else None


def _take(report: _Report, row: RateRow, header: Header, number: int, cite: Evidence) -> None:
    """Add the records of one row, or its gap."""
    row.marks |= {kind for kind in header.kinds if kind in ("both", "together", "invalid")}
    references = [kind for kind in header.kinds if kind in ("before", "after", "upward", "downward")]
    if len(references) == len(row.rates) == 2:
        row.rates = [(value, mark) for (value, _), mark in zip(row.rates, references, strict=True)]
    if directions := _directions(row):
        for one in directions:
            _take(report, one, Header(), number, cite)
        return
    gap = _gap(row)
    if gap == "path" and row.path in PATHS and len(row.rates) == 1:
        report.records += path_rates(report.part, row, cite)
    elif gap:
        report.gaps.setdefault(gap, []).append(number)
    elif names := _named(row):
        _add_node(report, row, names, number, cite)
    else:
        report.records += flows_of(report.part, row, cite)


def _directions(row: RateRow) -> list[RateRow]:
    """A row with a number for each direction between a GPU and its host, as two rows. Empty: another row."""
    if row.pairs or len(row.rates) != 2 or {mark for _, mark in row.rates} != {"upward", "downward"}:
        return []
    marks = row.marks - {"upward", "downward"}
    return [replace(row, rates=[(value, "")], marks=marks | {mark}) for value, mark in row.rates]


def _named(row: RateRow) -> tuple[str, ...]:
    """The nodes of a row about whole nodes, with the adapter if the row names one."""
    if row.machine:
        return tuple(row.alone)
    if len(row.pairs) == 1 and not any(map(vocabulary.is_device, row.pairs[0])):
        return row.pairs[0]
    if len(row.pairs) == 1 and not vocabulary.is_device(row.pairs[0][0]) and is_nic(row.pairs[0][1]):
        return ("/".join(row.pairs[0]),)
    return tuple(row.alone) if not row.pairs and len(row.alone) == 1 and not vocabulary.is_device(row.alone[0]) else ()


def _gap(row: RateRow) -> str:
    """The reason why the row gives no rate; empty if it does."""
    marks = {mark for _, mark in row.rates}
    count = max(1, len(row.pairs))
    if "invalid" in row.marks:
        return "invalid"
    if row.doubtful or (not row.rates and row.bare):
        return "bits" if row.doubtful else "unit"
    if not (row.pairs or row.alone or row.collective):
        return "path" if row.path else "ends"
    if not (row.collective or row.machine or _complete(row)):
        return "ends"
    if any(is_nic(a) and is_nic(b) for a, b in row.pairs):
        return "nics"
    if len(row.rates) not in (1, count) and marks not in ({"before", "after"}, {"", "wanted"}):
        return "numbers"
    if len(row.rates) < count and not row.joined and not row.marks & {"each", "sum", "also", "beside"}:
        return "sum"
    return ""


def _complete(row: RateRow) -> bool:
    """Whether the row names both ends of each flow. An adapter's other end is its network."""
    known = {"upward", "downward"} & row.marks
    return all(
        is_nic(end)
        or is_disk(end)
        or not vocabulary.is_device(end)
        or (known and (end.startswith("gpu") or vocabulary.is_address(end)))
        for end in row.alone
    )


def _add_node(report: _Report, row: RateRow, names: tuple[str, ...], number: int, cite: Evidence) -> None:
    """The best rate of a pair of nodes, or of a node: disturbances only lower a measurement."""
    key, best = "-".join(names), max(value for value, _ in row.rates)
    known = report.nodes.get(key)
    if known is None or (known[0].rate or 0) < best:
        a, b = names[0].partition("/")[0], names[1] if len(names) > 1 else None
        report.nodes[key] = NodePair(key=key, a=a, b=b, rate=best, cites={"rate": cite}), number


def _nodes(report: _Report) -> Iterator[NodePair]:
    """Pairs of nodes; single nodes only if there are several with names of the same form."""
    forms = Counter(shape(one.a or "") for one, _ in report.nodes.values() if one.b is None)
    for one, number in report.nodes.values():
        if one.b is not None or forms[shape(one.a or "")] >= _FEWEST_NODES:
            yield one
        else:
            report.gaps.setdefault("nodes", []).append(number)


def _gaps(report: _Report) -> Iterator[NotChecked]:
    why: Mapping[str, str] = {**_GAPS, "invalid": _INVALID}
    for gap, lines in report.gaps.items():
        more = f"; {len(lines) - 1} more such rows" if len(lines) > 1 else ""
        yield NotChecked(
            what="Observation",
            subject="node",
            reason=_REASONS.get(gap, Reason.UNREADABLE),
            path=report.part.where(lines[0]),
            detail=f"{why[gap]}{more}",
            how=_HOW,
        )
