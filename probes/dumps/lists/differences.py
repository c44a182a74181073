"""Values of a list that differ from those of all its other devices: "Attention", where seven others have "Normal", or
13.2 GB/s, where they have about 54.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .item import Cell, Item

_FEWEST = 4  # devices
# Names of values that differ between healthy devices
_OWN = re.compile(
    r"name|model|product|serial|uuid|guid|node|socket|numa|rail|switch|slot|role|user|owner|job|proc|pid|command|cmd"
    r"|display|disp|path|mount|label|comment|note|remark|mac|ip\b|addr|date|since|peer|affinity|cpu|util|used|free|load",
    re.IGNORECASE,
)
# What all but one of the devices have: a word without a number, all of a number ("18/18"), or no error
_WORDS, _ALL = re.compile(r"[^0-9]*[A-Za-z-][^0-9]*"), re.compile(r"([0-9]{1,4}) ?(?:/|of) ?\1")
_ERRORS = re.compile(
    r"err|xid|fault|fail|replay|crc|drop|discard|retr|down|lost|missing|flap|uncorr|ecc|remap|thrott", re.IGNORECASE
)
# Names of numbers that are about equal on equal devices. A clock and the power depend on the load.
_EQUAL = re.compile(
    r"b/s|bps|bandwidth|\bbw\b|busbw|algbw|flops|throughput|tokens|samples|latency|\btime|step|h2d|d2h|p2p|stream|hbm"
    r"|power.{0,4}(?:limit|cap)|\bmax|limit|memory|temp|score",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?([A-Za-z%/\u00b0\u00b5]{0,12})")
_ALIKE, _FAR = 0.1, 0.25  # of the median: the spread of the others, and the distance of the one


def odd_cells(items: Sequence[Item]) -> list[Cell]:
    """The cells of columns in which one device has another value than all others: these have the same word, or about
    the same number.
    """
    columns: dict[str, list[Cell]] = {}
    for item in items:
        for cell in item.cells:
            columns.setdefault(cell.name, []).append(cell)
    known = [cells for name, cells in columns.items() if len(cells) >= _FEWEST and not _OWN.search(name)]
    return [odd for cells in known for odd in (*_other_word(cells), *_other_number(cells))]


def _other_word(cells: Sequence[Cell]) -> list[Cell]:
    (usual, most), *others = Counter(cell.value for cell in cells).most_common(2)
    healthy = _WORDS.fullmatch(usual) or _ALL.fullmatch(usual) or (usual == "0" and _ERRORS.search(cells[0].name))
    if most < len(cells) - 1 or len(others) != 1 or not healthy:
        return []
    return [cell for cell in cells if cell.value != usual and cell.value]


def _other_number(cells: Sequence[Cell]) -> list[Cell]:
    found = [_NUMBER.fullmatch(cell.value) for cell in cells]
    numbers = sorted((float(one[1]), place) for place, one in enumerate(found) if one)
    if len(numbers) < len(cells) or len({one[2] for one in found if one}) > 1 or not _EQUAL.search(cells[0].name):
        return []
    median = numbers[len(numbers) // 2][0]
    for odd, others in ((numbers[0], numbers[1:]), (numbers[-1], numbers[:-1])):
        alike = others[-1][0] - others[0][0] <= _ALIKE * median
        if alike and abs(odd[0] - median) > _FAR * median:
            return [cells[odd[1]]]
    return []
