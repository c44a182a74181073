"""Tables with a heading, whatever separates their columns: bars, tabs, commas or blanks.

A row has as many cells as the heading has names. In a table with blanks a cell can be empty or have several words: then
it belongs to the name above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from .item import MOST_CELLS, NAMING, Cell, Item, Listed, is_device, item_of

_LONGEST = 400  # characters of a line
_BETWEEN = 3  # other lines within a table
_NAME = re.compile(r"[A-Za-z#][\w .,/()%#:°\[\]-]{0,39}")
_PAIR = re.compile(r"(\w)[ _]?\((\w{1,12})[ ]?/[ ]?(\w{1,12})\)")  # "width (cur/max)"
_WORDS, _COLUMNS = re.compile(r"\S{1,80}"), re.compile(r"\S{1,80}(?:[ ]\S{1,80}){0,20}")
Splitter = Callable[[str], "list[str]"]


def _separated(sign: str) -> Splitter:
    return lambda line: [cell.strip(" *`\"'") for cell in line.strip().strip(sign.strip() or sign).split(sign)]


def _cells(pattern: re.Pattern[str]) -> Splitter:
    return lambda line: [cell.strip("*`\"'") for cell in pattern.findall(line)]


_SPLITTERS = (_separated("|"), _separated("\t"), _separated(","), _separated(";"), _cells(_COLUMNS), _cells(_WORDS))


class _Heading(Struct):
    """The names of columns, the function that splits a row, and, if blanks separate them, where each name begins."""

    names: list[str]
    split: Splitter
    starts: list[int]


def tables(lines: Sequence[str]) -> Iterator[Listed]:
    """The tables with a column that names devices."""
    number = 0
    while number < len(lines):
        heading = _heading(lines, number)
        found = _rows(lines, number, heading) if heading else None
        if found and found.items:
            yield found
        number = found.end if found and found.items else number + 1


def _heading(lines: Sequence[str], number: int) -> _Heading | None:
    line = lines[number]
    if len(line) > _LONGEST or not any(map(str.isalpha, line)):
        return None
    below = next((one for one in lines[number + 1 : number + 1 + _BETWEEN] if any(map(str.isalnum, one))), "")
    for split in _SPLITTERS:
        names = split(line)
        if not 2 <= len(names) <= MOST_CELLS or not all(map(_is_name, names)):
            continue
        starts = [one.start() for one in _COLUMNS.finditer(line)] if split is _SPLITTERS[-2] else []
        heading = _Heading([_PAIR.sub(r"\1 \2/\3", name) for name in names], split, starts)
        if _row(heading, below):
            return heading
    return None


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and not is_device(text)


def _rows(lines: Sequence[str], first: int, heading: _Heading) -> Listed:
    items: list[Item] = []
    end, other = first + 1, 0
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if not any(map(str.isalnum, line)):
            if not line.strip() and items:
                break
            continue
        cells = _row(heading, line)
        item = item_of([Cell(name, value, number, line) for name, value in cells]) if cells else None
        other = 0 if item else other + 1
        if other > _BETWEEN or (not items and other):
            break
        if item:
            items.append(item)
            end = number + 1
    return Listed(first, end, tuple(items))


def _row(heading: _Heading, line: str) -> list[tuple[str, str]] | None:
    """The cells of a row with their names. None: it is no row of the table."""
    cells = heading.split(line) if len(line) <= _LONGEST else []
    if len(cells) == len(heading.names):
        return list(zip(heading.names, cells, strict=True))
    return _below(heading, line) if heading.starts and len(cells) > 1 else None


def _below(heading: _Heading, line: str) -> list[tuple[str, str]] | None:
    """The cells of a row by their positions below the names."""
    found: dict[int, str] = {}
    for cell in _COLUMNS.finditer(line):
        place = max((at for at, start in enumerate(heading.starts) if start <= cell.start() + 1), default=0)
        found[place] = f"{found[place]} {cell[0]}" if place in found else cell[0]
    naming = [place for place, name in enumerate(heading.names) if NAMING.fullmatch(name)]
    whole = all(place in found for place in (0, *naming))
    return [(heading.names[place], text) for place, text in found.items()] if whole else None
