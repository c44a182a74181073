"""The table of access of rocm_bandwidth_test: 1 if the device of the row can access that of the column, else 0.

The processor's row often has a 0: the BAR of a consumer board shows a part of the GPU's memory. So only pairs of GPUs
are read. A copy between GPUs without access has no rate (N/A).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.facts.gpu import NO_ACCESS, GpuPair
from ..core.part import Part
from ..lines.markup import cells_of

_TITLE = re.compile(r"(?:Inter-)?Device Access")
_COLUMNS = re.compile(r"D/D((?:\s+[0-9]{1,3}){1,64})")
_ROW = re.compile(r"([0-9]{1,3})((?:\s+[01]){1,64})")


def access(part: Part, ends: Mapping[str, str]) -> Iterator[GpuPair]:
    """The pairs of GPUs. `ends` has the key of each device by its number. Without access in one direction, none."""
    columns: list[str] | None = None
    pairs = dict[str, GpuPair]()
    for number, line in part.lines():
        text = cells_of(line).strip()
        row = _ROW.fullmatch(text) if columns else None
        if _TITLE.fullmatch(text):
            columns = []
        elif columns == [] and (heading := _COLUMNS.fullmatch(text)):
            columns = heading[1].split()
        elif columns and row and len(row[2].split()) == len(columns):
            for column, cell in zip(columns, row[2].split(), strict=True):
                _add(pairs, ends.get(row[1], ""), ends.get(column, ""), cell, part, (number, line))
        elif text:
            columns = None
    yield from pairs.values()


def _add(pairs: dict[str, GpuPair], sender: str, receiver: str, cell: str, part: Part, where: tuple[int, str]) -> None:
    if sender == receiver or not (sender.startswith("gpu") and receiver.startswith("gpu")):
        return
    a, b = sorted((sender, receiver), key=lambda end: int(end[3:]))
    key = f"{a}-{b}"
    if key not in pairs or cell == "0":
        status = "ok" if cell == "1" else NO_ACCESS
        pairs[key] = GpuPair(key=key, a=a, b=b, read=status, cites={"read": part.cite(*where)})
