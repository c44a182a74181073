"""Columns of a table without a heading, by the shapes of their cells.

A UUID, a PCI address and the name of a product say what they are. Numbers do not, except those that can be nothing else
together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations

Cells = Sequence[str]

_GENERATION, _WIDTH = re.compile("[1-7]"), re.compile("1|2|4|8|16")
_WIDEST = "16"  # lanes: narrower links have numbers that are also generations or counts
_OLDEST = "3"  # generation that a GPU in use can have at most
_LINK = 4  # the generation and the width of a PCIe link, each now and at most


def shaped_columns(rows: Sequence[Cells], shapes: Mapping[str, re.Pattern[str]], none: re.Pattern[str]) -> list[str]:
    """The name of each column by the shape of all its cells but those without a value, which match `none`.

    "": no shape, or that of another column, too.
    """
    columns = [[row[place] for row in rows if not none.fullmatch(row[place])] for place in range(len(rows[0]))]
    names = [_name(cells, shapes) for cells in columns]
    several = Counter(names)
    return [name if several[name] == 1 else "" for name in names]


def _name(cells: Cells, shapes: Mapping[str, re.Pattern[str]]) -> str:
    return next((name for name, shape in shapes.items() if cells and all(map(shape.fullmatch, cells))), "")


def is_index(cells: Cells) -> bool:
    """Whether the cells number the rows: several numbers, each one more than the one before it."""
    numbers = [int(cell) for cell in cells if re.fullmatch("[0-9]{1,2}", cell)]
    return 1 < len(cells) == len(numbers) and numbers == list(range(numbers[0], numbers[0] + len(cells)))


def link_widths(rows: Sequence[Cells]) -> tuple[int, int] | None:
    """The columns of the present and of the largest width of a PCIe link.

    Four adjacent columns are its generations and widths if all rows fit and the largest width is 16. None: there are no
    such columns, or several widths fit.
    """
    found: dict[tuple[int, int], list[str]] = {}
    for start in range(len(rows[0]) - _LINK + 1 if rows else 0):
        windows = [row[start : start + _LINK] for row in rows]
        for now, most, *others in permutations(range(_LINK)):
            if others == sorted(others) and all(_is_link(cells, now, most, others) for cells in windows):
                found[start + now, start + most] = [cells[now] for cells in windows]
    values = list(found.values())
    return min(found) if values and values.count(values[0]) == len(values) else None


def _is_link(cells: Cells, now: int, most: int, generations: Sequence[int]) -> bool:
    if cells[most] != _WIDEST or not _WIDTH.fullmatch(cells[now]):
        return False
    numbers = [cells[place] for place in generations]
    return all(map(_GENERATION.fullmatch, numbers)) and max(numbers) >= _OLDEST
