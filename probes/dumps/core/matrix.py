"""Matrices of rates between numbered devices, as nvbandwidth and the CUDA samples print them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from ....models.facts.gpu import Gpu
from ....models.facts.records import Flow, Observation, Record
from ..lines.markup import cells_of

_CORNERS = ("D\\D", "D/D", "GPU", "CPU", "-")  # labels of rows and columns, before the column numbers
_NUMBER = re.compile(r"0|[1-9][0-9]{0,2}")
_ROW = re.compile(r"([0-9]{1,3})((?:\s+(?:[0-9]+(?:\.[0-9]*)?|N/A|nan|-))*)")
_RATE = re.compile(r"[0-9]{1,7}\.[0-9]{2}")  # one number with fewer decimal places is truncated
_ROUNDED = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,3})?")  # several such numbers: a person rounded them
_EMPTY = re.compile(r"0(?:\.0{1,3})?|-?nan")

_TWO_PLACES = re.compile(r"[0-9]{1,7}\.[0-9]{2}|N/A")
_FUSED = re.compile(r"\.[0-9]{2}(?=[0-9]{1,7}\.|N/A)|N/A(?=[0-9])")
_NO_ROW = -1
_FOREIGN = 3  # lines of another program in succession
Ends = Callable[[str], bool]
_WHOLE = re.compile(r"[0-9]+\.[0-9]{2,}|N/A|nan|-")  # a complete number, or a cell without a number


class Cell(Struct, frozen=True):
    """A number of a matrix, in the unit of its tool, and its line."""

    row: int
    column: int
    value: float
    line: int


def cells(lines: Sequence[str], start: int, ends: Ends = lambda _: True) -> Iterator[Cell]:
    """The numbers of the matrix whose heading is the first line with text from line `start` on.

    Zeros were not measured and are left out. Damaged rows are left out, too: they have more or fewer cells than there
    are columns, or a number that does not follow the one of the row before. The end of the text can cut the last row.
    The same columns or the first number again begin another matrix: its heading is missing, so its rows are left out.
    `ends` tells whether a line that is no row ends the matrix. Another program can write up to three lines in between.
    """
    columns, rows = _rows(lines, start, ends)
    numbers = [number for _, number, _ in rows if number != _NO_ROW]
    end = next((line for line in reversed(range(len(lines))) if any(map(str.isalnum, lines[line]))), 0)
    rate = _form(rows)
    last, place = -1, 0
    for line, number, words in rows:
        place += number != _NO_ROW
        following = numbers[place] if place < len(numbers) else number + 1
        whole = len(words) == len(columns) or (line == end and len(words) < len(columns))
        if number <= last or (number > last + 1 and following <= number) or not whole:
            continue
        last = number
        for column, text in zip(columns, words, strict=False):
            if rate.fullmatch(text) and float(text):
                yield Cell(number, column, float(text), line)


def damaged(lines: Sequence[str], start: int, ends: Ends = lambda _: True) -> int | None:
    """The line of the heading or of the first row that is damaged."""
    columns, rows = _rows(lines, start, ends)
    if not columns:
        return start if start < len(lines) else None
    read = {cell.line for cell in cells(lines, start, ends)}
    full = (
        line
        for line, number, words in rows
        if number == _NO_ROW or any(_RATE.fullmatch(text) and float(text) for text in words)
    )
    unread = next((line for line in full if line not in read), None)
    odd = next((line for line, _, words in rows if any(map(_is_odd, words))), None)
    return odd if unread is None and _form(rows) is _RATE else unread


def empty_cell(lines: Sequence[str], start: int, ends: Ends = lambda _: True) -> int | None:
    """The line of the first row in which a copy to another device has no rate: 0.00 or nan beside rates."""
    columns, rows = _rows(lines, start, ends)
    for line, number, words in rows:
        others = [text for column, text in zip(columns, words, strict=False) if column != number]
        if any(map(_EMPTY.fullmatch, others)) and any(map(_RATE.fullmatch, words)):
            return line
    return None


def _form(rows: Sequence[tuple[int, int, list[str]]]) -> re.Pattern[str]:
    """The form of the numbers of a matrix."""
    return _ROUNDED if sum(_is_odd(word) for _, _, words in rows for word in words) > 1 else _RATE


def _is_odd(text: str) -> bool:
    return bool(_ROUNDED.fullmatch(text)) and not _RATE.fullmatch(text)


def _rows(lines: Sequence[str], start: int, ends: Ends) -> tuple[list[int], list[tuple[int, int, list[str]]]]:
    """The columns of a matrix, and of each row the line, the number and the cells."""
    columns: list[int] | None = None
    rows: list[tuple[int, int, list[str]]] = []
    foreign, first = 0, ""
    for line in range(start, len(lines)):
        text = cells_of(lines[line]).strip()
        if not any(map(str.isalnum, text)):
            continue
        if columns is None:
            columns = _heading(text)
            foreign += columns is None
            if columns is None and (foreign > _FOREIGN or ends(text) or text[0].isdecimal()):
                break
        elif row := _ROW.fullmatch(text) or _unfused(text, len(columns)):
            if rows and (_heading(text) == columns or (int(row[1]) == rows[0][1] and text != first)):
                rows.append((line, _NO_ROW, []))
                break
            first = first or text
            rows.append((line, int(row[1]), row[2].split()))
        elif text[0].isdecimal() and (_RATE.search(text) or len(text.split()) > len(columns)):
            rows.append((line, _NO_ROW, []))
        else:
            foreign += 1
            if foreign > _FOREIGN or ends(text) or _heading(text) or not any(map(str.isalpha, text)):
                break
            continue
        foreign = 0 if columns and rows else foreign
    return columns or [], rows


def _unfused(text: str, columns: int) -> re.Match[str] | None:
    """The row whose cells are joined. Their two decimal places show where each ends."""
    row = _ROW.fullmatch(_FUSED.sub(r"\g<0> ", text))
    return row if row and len(row[2].split()) == columns and all(map(_TWO_PLACES.fullmatch, row[2].split())) else None


def _heading(text: str) -> list[int] | None:
    """The column numbers, which ascend; None: the line is no heading, or a damaged one."""
    words = [word for word in text.replace("D \\ D", "D\\D").split() if word not in _CORNERS]
    numbers = [int(word) for word in words] if words and all(map(_NUMBER.fullmatch, words)) else []
    return numbers if numbers and numbers == sorted(set(numbers)) else None


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


def covers(measured: Collection[tuple[int, int]], found: Sequence[Cell]) -> bool:
    """Whether all pairs of the columns of a matrix were measured before: the rest of it is about the same pairs."""
    columns = {one.column for one in found}
    return bool(found) and all((row, column) in measured for row in columns for column in columns if row != column)


def with_gpus(records: Iterable[Record]) -> Iterator[Record]:
    """The records, and a Gpu for each numbered GPU that only the ends of flows name."""
    named, ends = set[str](), dict[str, None]()
    for one in records:
        if isinstance(one, Gpu):
            named.add(one.key)
        elif isinstance(one, Observation) and isinstance(one.about, Flow):
            ends |= dict.fromkeys(one.about.ends)
        yield one
    yield from (Gpu(key=end) for end in ends if end not in named and re.fullmatch("gpu[0-9]+", end))
