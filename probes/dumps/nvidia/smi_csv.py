"""`nvidia-smi --query-gpu=... --format=csv`: a line of column names, then one line per GPU, repeated with -l.

Without the column "index", the PCI address is the key. Without both, GPUs get numbers in the order of the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....models.facts.gpu import Driver
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part
from .smi_fields import LOST, WANTED, Card, facts
from .smi_values import refused_cells

_COLUMN = (
    r"(?:timestamp|driver_version|kmd_version|count|index|name|serial|uuid|pstate|vbios_version|persistence_mode"
    r"|compute_mode|gpu_(?:name|uuid|bus_id)|(?:pci|pcie|memory|temperature|power|clocks|ecc|mig|fabric|utilization"
    r"|enforced|remapped_rows|retired_pages|clocks_(?:event|throttle)_reasons)\.[\w.]{1,60})(?: \[[A-Za-z%]{1,4}\])?"
)
_REASONS = r"clocks_(?:event|throttle)_reasons\.[a-z_]{2,60}"
_TITLE = rf"[ \t]*(?:{_COLUMN}, ?{_COLUMN}(?:, ?[a-z]|[ \t]*$)|{_REASONS}[ \t]*$)"
# Without a title, the command names the columns.
_COMMAND = (
    r"[^\n]{0,100}?nvidia-smi[^\n]{0,80}?--query-(?:gpu|remapped-rows)=[\"']?[a-z][\w.]{1,60},[^\n]{0,400}?noheader"
)
BEGIN = rf"^(?:{_TITLE}|{_COMMAND})"
_HEAD = re.compile(_TITLE)
_QUERY = re.compile(r"--query-(?:gpu|remapped-rows)=[\"']?(?P<columns>[\w.]{1,60}(?:, ?[\w.]{1,60}){1,100})")
_UNIT = re.compile(r" \[[A-Za-z%]{1,4}\]$")
_PER_PROCESS = {"pid", "retired_pages.address"}  # columns of other queries that share column names
_VERSION = {"driver_version": "version", "kmd_version": "version"}
_MOST_COLUMNS = 500


def read(part: Part) -> Iterator[Record]:
    """The `Driver`, and a `Gpu` per line. A truncated line gives all columns except its last one."""
    columns: list[str] = []
    order = 0
    lines = part.text.split("\n")
    for number, line in enumerate(lines):
        if _HEAD.match(line):
            columns = [_UNIT.sub("", name.strip()) for name in line.split(",")[:_MOST_COLUMNS]]
            order = 0
        elif "noheader" in line and (query := _QUERY.search(line)):
            columns, order = [name.strip() for name in query["columns"].split(",")], 0
        elif columns:
            cells = [cell.strip() for cell in line.split(",")[: _MOST_COLUMNS + 1]]
            if number == len(lines) - 1 and 2 < len(cells) < len(columns):
                cells.pop()
                yield part.cut(number, f"after {len(cells)} of {len(columns)} columns")
            elif len(cells) != len(columns) and len(cells) > 1:  # a line without a comma can be of another program
                columns = []  # end of the table
            if len(cells) == len(columns) and not _PER_PROCESS & set(columns):
                yield from _row(columns, cells, order, part.cite(number, line), part.at)
                yield from refused_cells(part, number, dict(zip(columns, cells, strict=False)))
                order += 1


def _row(columns: Sequence[str], cells: Sequence[str], order: int, where: Evidence, at: float) -> Iterator[Record]:
    values = dict(zip(columns, cells, strict=False))
    known: dict[str, Any] = {
        field: values[name] for name, field in _VERSION.items() if values.get(name, "")[:1].isdecimal()
    }
    if known:
        known["library"] = known["version"]
    if re.fullmatch("[0-9]{1,3}", values.get("count", "")):
        known["gpus"] = int(values["count"])
    if known:
        yield Driver(key="nvidia", cites=dict.fromkeys(known, where), **known)
    try:
        address = pci_address(values.get("pci.bus_id") or values.get("gpu_bus_id") or "0000:00:00.0")
    except ValueError as wrong:
        yield NotChecked(what="Gpu", subject="node", reason=Reason.UNREADABLE, path=where.source, detail=str(wrong))
        return
    numbered = re.fullmatch("[0-9]{1,3}", values.get("index", ""))
    key = f"gpu{int(numbered[0])}" if numbered else address or f"gpu{order}"
    texts = {name: (text, where) for name, text in values.items() if name in WANTED or LOST.fullmatch(text)}
    yield from facts(Card(key=key, address=address, texts=texts), at)
