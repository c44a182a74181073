"""Values of a list that differ from those of all its other devices: "Attention", where seven others have "Normal"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .item import Cell, Item

_FEWEST = 4  # devices
# Names of values that differ between healthy devices
_OWN = re.compile(
    r"name|model|product|serial|uuid|guid|node|socket|numa|rail|switch|slot|role|user|owner|job|proc|pid|command|cmd"
    r"|display|disp|path|mount|label|comment|note|remark|mac|ip\b|addr|time|date|since|peer|affinity|cpu",
    re.IGNORECASE,
)
# What all but one of the devices have: a word without a number, all of a number ("18/18"), or no error
_WORDS, _ALL = re.compile(r"[^0-9]*[A-Za-z-][^0-9]*"), re.compile(r"([0-9]{1,4}) ?(?:/|of) ?\1")
_ERRORS = re.compile(
    r"err|xid|fault|fail|replay|crc|drop|discard|retr|down|lost|missing|flap|uncorr|ecc", re.IGNORECASE
)


def odd_cells(items: Sequence[Item]) -> list[Cell]:
    """The cells of columns in which one device has another value than all others, which have the same word."""
    columns: dict[str, list[Cell]] = {}
    for item in items:
        for cell in item.cells:
            columns.setdefault(cell.name, []).append(cell)
    found: list[Cell] = []
    for name, cells in columns.items():
        (usual, most), *others = Counter(cell.value for cell in cells).most_common(2)
        single = len(cells) >= _FEWEST and most == len(cells) - 1 and len(others) == 1
        healthy = _WORDS.fullmatch(usual) or _ALL.fullmatch(usual) or (usual == "0" and _ERRORS.search(name))
        if single and healthy and not _OWN.search(name):
            found += [cell for cell in cells if cell.value != usual and cell.value]
    return found
