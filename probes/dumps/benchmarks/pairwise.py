"""Tables of a collective between pairs of nodes: "node1,node2 88.36", and matrices of nodes, bus bandwidth in GB/s.

Scripts around nccl-tests and perftest write them; no tool has this name. In a matrix only the ratios count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from ....models.facts.network_paths import NodePair
from ....models.facts.records import Evidence, Record
from ....models.facts.units import from_gigabytes
from ..core.part import Part

# Names of nodes; rates.py reads rows about devices
_NAME = r"(?!(?i:gpu|cuda|numa|mlx5_|host\b|cpu))[A-Za-z][\w.-]{0,62}"
_JOINT, _RATE = r"(?:,[ \t]?|[ \t]?<->[ \t]?)", r"[0-9]{1,4}\.[0-9]{1,3}"
_END = r"[ \t]*(?:GB/s[ \t]*)?(?:#.*)?"
# A heading of names with the first row: its name, and an empty cell for the node itself
_NODE = (
    r"(?!(?i:gpu|nic|mlx|numa|cpu|link|rank|port|lane|ch|step|dev|sd[a-z]|nvme|md))[A-Za-z][A-Za-z_.-]{0,40}[0-9]{1,5}"
)
_OWN = r"(?:-{1,3}|X|x|nan|NaN|N/A|0(?:\.0{1,4})?)"
_HEADING = (
    rf"[ \t|]{{0,40}}(?:[A-Za-z/\\>]{{1,12}}[ \t|]{{1,20}})?{_NODE}(?:[ \t|]{{1,20}}{_NODE}){{2,63}}[ \t|]{{0,8}}"
)
BEGIN = (
    rf"^(?:[ \t]*{_NAME}{_JOINT}{_NAME}[ \t:,]+{_RATE}{_END}$"
    rf"|{_HEADING}\n(?:[-|: \t]{{3,200}}\n)?[ \t|]{{0,8}}{_NODE}[ \t|]{{1,20}}{_OWN}[ \t|]{{1,20}}[0-9])"
)
_COLUMNS = re.compile(_HEADING)
# Numbers include the 0 of the node itself: an alternative that matches twice makes the search exponential
_CELL = re.compile(r"-{1,3}|X|x|nan|NaN|N/A|[0-9]{1,6}(?:\.[0-9]{1,4})?")
_RATED = re.compile(r"(?!0{1,6}(?:\.0{1,4})?$)[0-9]{1,6}(?:\.[0-9]{1,4})?")  # not the 0 of the node itself
_MOST = 64  # columns
_ROW = re.compile(rf"[ \t]*({_NAME}){_JOINT}({_NAME})[ \t:,]+({_RATE}){_END}")


def read(part: Part) -> Iterator[Record]:
    """The rate of each pair.

    If a pair was measured several times, the highest: disturbances only lower a measurement.
    """
    best: dict[str, NodePair] = {}
    columns: list[str] = []
    rows: list[tuple[int, str, list[str]]] = []
    for number, line in part.lines():
        if _COLUMNS.fullmatch(line):
            yield from _matrix(part, columns, rows)
            columns, rows = re.findall(_NODE, line), []
        elif columns and (cells := _cells(line)):
            rows.append((number, line, cells))
            continue
        row = _ROW.fullmatch(line)
        if row and row[1] != row[2]:
            key, rate = f"{row[1]}-{row[2]}", from_gigabytes(float(row[3]))
            known = best.get(key)
            if known is None or (known.rate or 0) < rate:
                best[key] = NodePair(key=key, a=row[1], b=row[2], rate=rate, cites={"rate": part.cite(number, line)})
    yield from _matrix(part, columns, rows)
    yield from best.values()


def _matrix(part: Part, columns: list[str], rows: list[tuple[int, str, list[str]]]) -> Iterator[Record]:
    """The rates of a matrix. A script writes each one with the same number of decimals: another number is damaged."""
    decimals = Counter(_decimals(cell) for _, _, cells in rows for cell in cells[1:] if _RATED.fullmatch(cell))
    usual = {count for count, times in decimals.items() if times * 4 > decimals.total()}
    for number, line, (node, *values) in rows:
        damaged = [cell for cell in values if _RATED.fullmatch(cell) and _decimals(cell) not in usual]
        if damaged or len(values) != len(columns):
            why = f"the row of {node} has {' '.join(damaged) or 'fewer cells or more'}, unlike the others"
            yield part.gap(number, why, "NodePair.rate", how="take the output again")
            continue
        yield from _row(node, dict(zip(columns, values, strict=True)), part.cite(number, line))


def _decimals(cell: str) -> int:
    return len(cell.partition(".")[2])


def _cells(line: str) -> list[str]:
    """The name of the node of a row, and its values. Empty: the line is no row."""
    cells = line.replace("|", " ").split()
    if not 3 < len(cells) <= _MOST + 1 or not re.fullmatch(_NODE, cells[0]):
        return []
    return cells if all(_CELL.fullmatch(cell) for cell in cells[1:]) else []


def _row(node: str, values: Mapping[str, str], cite: Evidence) -> Iterator[NodePair]:
    """The rates of a row of a matrix: from its node to those of the columns."""
    for other, text in values.items():
        if other != node and re.fullmatch(r"[0-9.]{1,10}", text) and float(text):
            rate = from_gigabytes(float(text))
            yield NodePair(key=f"{node}-{other}", a=node, b=other, rate=rate, cites={"rate": cite})
