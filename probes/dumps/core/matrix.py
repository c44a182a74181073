"""Matrices of rates between numbered devices, as nvbandwidth and the CUDA samples print them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....models.facts.gpu import Gpu
from ....models.facts.records import Flow, Observation, Record
from .markup import cells_of

_CORNERS = ("D\\D", "D/D", "GPU", "CPU", "-")  # labels of rows and columns, before the column numbers
_NUMBER = re.compile(r"[0-9]{1,3}")
_ROW = re.compile(r"\s*([0-9]{1,3})((?:\s+(?:[0-9]+(?:\.[0-9]*)?|N/A|nan|-))*)\s*")
_RATE = re.compile(r"[0-9]{1,7}\.[0-9]{2}")  # a number with fewer decimal places is truncated

_WHOLE = re.compile(r"[0-9]+\.[0-9]{2,}|N/A|nan|-")  # a complete number, or a cell without a number


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a matrix, in the unit of its tool, and its line."""

    row: int
    column: int
    value: float
    line: int


def cells(lines: Sequence[str], start: int) -> Iterator[Cell]:
    """The numbers of the matrix whose heading is the first line with text from line `start` on.

    Zeros were not measured and are left out. Lines without letters and digits are skipped.
    """
    columns: list[int] | None = None
    for line in range(start, len(lines)):
        text = cells_of(lines[line])
        if not any(map(str.isalnum, text)):
            continue
        if columns is None:
            columns = _heading(text)
            if columns is None:
                return
            continue
        row = _ROW.fullmatch(text)
        if not row:
            return
        for column, number in zip(columns, row[2].split(), strict=False):
            if _RATE.fullmatch(number) and float(number):
                yield Cell(int(row[1]), column, float(number), line)


def _heading(text: str) -> list[int] | None:
    """The column numbers; None: the line is no heading."""
    words = [word for word in text.replace("D \\ D", "D\\D").split() if word not in _CORNERS]
    return list(map(int, words)) if words and all(map(_NUMBER.fullmatch, words)) else None


def truncation(lines: Sequence[str], start: int, square: bool) -> tuple[int, str] | None:
    """The line and the position at which the text ends within the matrix with its heading on line `start`.

    `square`: it has one row per column. None if the matrix is complete or if text follows it.
    """
    columns = [word for word in lines[start].split() if word not in _CORNERS] if start < len(lines) else []
    last = start
    while last + 1 < len(lines) and lines[last + 1].lstrip()[:1].isdecimal():
        last += 1
    if any(lines[line].strip() for line in range(last + 1, len(lines))):
        return None
    if not columns or not all(map(_NUMBER.fullmatch, columns)):
        return (start - 1, "before a matrix") if start >= len(lines) or not columns else None
    words = lines[last].split()[1:]
    if last == start or len(words) < len(columns) or not _WHOLE.fullmatch(words[-1]):
        return last, f"within a matrix of {len(columns)} columns"
    rows = last - start
    return (last, f"after {rows} of {len(columns)} rows") if square and rows < len(columns) else None


def implied_gpus(records: Sequence[Record]) -> Iterator[Gpu]:
    """A Gpu for each GPU that only the ends of flows name."""
    named = {one.key for one in records if isinstance(one, Gpu)}
    flows = (one.about for one in records if isinstance(one, Observation) and isinstance(one.about, Flow))
    for key in dict.fromkeys(end for flow in flows for end in flow.ends):
        if key.startswith("gpu") and key not in named:
            yield Gpu(key=key)
