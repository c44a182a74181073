"""Rows below a heading of column names, also if the terminal wrapped them, and rows without a heading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ....models.facts.records import NotChecked
from ..lines.markup import cells_of
from .part import Part

_Columns = TypeVar("_Columns", bound=Sequence[object])


class Row(Struct, Generic[_Columns], frozen=True):
    """A row and its columns, and the number and the text of its first line. A heading has no cells."""

    columns: _Columns
    cells: tuple[str, ...]
    number: int
    text: str


def rows(
    part: Part,
    heading: Callable[[str], _Columns | None],
    guess: Callable[[tuple[str, ...]], _Columns | None],
    plain: Callable[[str], str] = str.strip,
    extra: bool = False,
    fused: re.Pattern[str] | None = None,
) -> Iterator[Row[_Columns] | tuple[int, str]]:
    """The headings and rows of a part, and all other lines with their numbers.

    `heading` gives the columns that a line names; it also gets two lines joined. `guess` gives the columns of a row
    without a heading by the shapes of its cells. A row has as many cells as there are columns, in one line or two.
    `extra`: it can have more, because the names of the last columns are missing. `fused` matches the end of a cell to
    which the next one is joined.
    """
    columns: _Columns | None = None
    lines = [plain(cells_of(line)) for _, line in part.lines()]
    skip = -1
    for number, line in enumerate(lines):
        if number == skip:
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if named := heading(line):
            longer = heading(f"{line} {following}")
            wrapped = longer is not None and len(longer) > len(named) and not heading(following)
            columns, skip = (longer, number + 1) if wrapped and longer else (named, skip)
            yield Row(columns, (), number, line)
            continue
        cells = _cells(line, len(columns or ()), fused)
        joined = (*cells, *following.split())
        if columns is not None and 0 < len(cells) < len(columns) == len(joined) and _are_numbers(cells[:2]):
            skip = number + 1
            yield Row(columns, joined, number, line)
        elif columns is not None and _fits(cells, len(columns), extra):
            yield Row(columns, cells, number, line)
        elif columns is None and (guessed := guess(cells)):
            yield Row(guessed, cells, number, line)
        else:
            yield number, line


def cut_row(
    part: Part, columns: Sequence[object], plain: Callable[[str], str] = str.strip, words: bool = False
) -> Iterator[NotChecked]:
    """Whether the text ends within a row. `words`: only the first two cells of a row are always numbers.

    No line after a table begins with as many numbers as a row.
    """
    whole = part.text.rstrip()
    cells = plain(whole[whole.rfind("\n") + 1 :]).split()
    numbers = all(map(str.isdecimal, cells[:2])) if words else _are_numbers(cells)
    if words < len(cells) < len(columns) and numbers:
        yield part.cut(whole.count("\n"), f"after {len(cells)} of {len(columns)} columns")


def _cells(line: str, columns: int, fused: re.Pattern[str] | None) -> tuple[str, ...]:
    cells = line.split()
    apart = fused.sub(r"\g<0> ", line).split() if fused and len(cells) < columns else []
    return tuple(apart if apart and len(apart) == columns else cells)


def _fits(cells: Sequence[str], columns: int, extra: bool) -> bool:
    return (len(cells) == columns or (extra and len(cells) > columns)) and _are_numbers(cells[:2])


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(cell.replace(".", "", 1).replace("_", "").isdecimal() for cell in cells)
