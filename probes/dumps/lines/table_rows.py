"""Rows of a table with edges ("| a | b |", "+---+---+") that end on a later line.

All rows are as long as the rule above them. So the length tells which lines belong to one row, however narrow the
window was, and whether blanks at the ends of lines are lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_RULE = re.compile(r"[|+][-=+|]{2,}")
_PIECE = re.compile(r"[-=+|]+")
_SHORTEST = 40  # characters of a table that a window can cut


class Row(NamedTuple):
    """The lines of a row, from `first` up to and without `end`. `whole`: they are as long as the table is wide."""

    first: int
    end: int
    whole: bool
    closed: bool


def rows(lines: Sequence[str]) -> Iterator[Row]:
    """The rows and rules of all tables that have a rule."""
    number, width = 0, 0
    while number < len(lines):
        line = lines[number]
        if _RULE.fullmatch(line):
            end = _end_of_rule(lines, number)
            width = sum(map(len, lines[number:end]))
        elif line.startswith("|") and width >= _SHORTEST:
            end = _end_of_row(lines, number, width)
        else:
            width = width if line.strip() else 0
            number += 1
            continue
        length = sum(map(len, lines[number:end]))
        yield Row(number, end, length == width, length > width or lines[end - 1].endswith(("|", "+")))
        number = end


def _end_of_rule(lines: Sequence[str], first: int) -> int:
    end, closed = first + 1, lines[first].endswith(("+", "|"))
    while end < len(lines) and _PIECE.fullmatch(lines[end]) and not (closed and lines[end].startswith(("+", "|"))):
        closed = lines[end].endswith(("+", "|"))
        end += 1
    return end


def _end_of_row(lines: Sequence[str], first: int, width: int) -> int:
    end, length = first + 1, len(lines[first])
    while end < len(lines) and lines[end] and not _RULE.fullmatch(lines[end]):
        length += len(lines[end])
        if length > width:
            break
        end += 1
    return end


def continued(lines: Sequence[str]) -> tuple[set[int], bool]:
    """The lines that continue on the next line, and whether no blank is lost."""
    cut = [row for row in rows(lines) if row.end > row.first + 1 and row.closed]
    return {number for row in cut for number in range(row.first, row.end - 1)}, all(row.whole for row in cut)


def open_rows(lines: Sequence[str]) -> Iterator[int]:
    """The lines (from 0) of rows without an end."""
    yield from (row.first for row in rows(lines) if not row.closed)
