"""`nvidia-smi --query-gpu=... --format=csv`: a line of column names, then one line per GPU, repeated with -l.

Without the column "index", the PCI address is the key. Without both, GPUs get numbers in the order of the lines.
Programs also write the names before the values: "index=0 pcie.link.width.current=8". Of lines without the names, the
columns are known whose cells can be nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from ....models.facts.gpu import Driver
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part
from ..core.shaped_columns import is_index, link_widths, shaped_columns
from .smi_fields import LOST, WANTED, Card, facts
from .smi_values import refused_cells

_COLUMN = (
    r"(?:timestamp|driver_version|kmd_version|count|index|name|serial|uuid|pstate|vbios_version|persistence_mode"
    r"|compute_mode|gpu_(?:name|uuid|bus_id)|(?:pci|pcie|memory|temperature|power|clocks|ecc|mig|fabric|utilization|fan"
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
_NAME = r"(?:NVIDIA (?!SMI)|Tesla |Quadro |GeForce )[A-Z0-9][\w ./-]{1,50}"
_UUID, _BUS = (
    r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]",  # rows of other programs begin with a domain of four digits
)
_SHAPES = {
    "name": re.compile(_NAME),
    "uuid": re.compile(_UUID),
    "pci.bus_id": re.compile(_BUS),
    "driver_version": re.compile(r"[1-9][0-9]{2}\.[0-9]{2,3}\.[0-9]{2}"),
    "pstate": re.compile("P(?:[0-9]|1[0-5])"),
}
# A cell with another value: a number with its unit, a state, a time, a version
_VALUE = (
    r"(?:-?[0-9]{1,12}(?:\.[0-9]{1,6}){0,2}(?: (?:MiB|W|MHz|%|C))?|0x[0-9a-fA-F]{2,16}|\[[A-Z][\w /]{1,40}\]"
    r"|N/A|P[0-9]{1,2}|Default|None|(?:En|Dis)abled|(?:Not )?Active|Yes|No|[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9:.]{8,15}"
    r"|[0-9A-F]{2}(?:\.[0-9A-F]{2}){4})"
)
_KNOWN = rf"(?:{_NAME}|{_UUID}|{_BUS})"
_DEVICE = rf"(?:{_KNOWN}|\[GPU (?:is lost|requires reset)\])"
_CELL = re.compile(rf"{_VALUE}|{_DEVICE}")
_BEHIND = rf"(?:,[ ]?(?:{_VALUE}|{_KNOWN}))"  # each cell fits one: two ways for each cell would take exponential time
_UNHEADED = (
    rf"[ \t]{{0,8}}(?:(?:{_VALUE},[ ]?){{1,40}}{_DEVICE}{_BEHIND}{{0,60}}|{_DEVICE}{_BEHIND}{{1,60}})[ \t]{{0,8}}$"
)
_CERTAIN = (
    r"(?:pcie[._]link[._](?:gen|width)[._](?:current|max)|clocks_(?:event|throttle)_reasons[._][a-z_]{2,60}"
    r"|ecc[._]errors[._][a-z._]{5,60}|remapped_rows[._][a-z]{5,20}"
    r"|(?:utilization|temperature)\.gpu|pci\.bus_id|power\.draw|clocks\.(?:current|max)\.[a-z]{2,8}"
    r"|(?:mig|ecc)\.mode\.current)"
)
_WISHED = r"(?!(?i:[^\n]{0,200}\b(?:should|expect|want|must|if|when|unless|instead|require|normal|target|example)))"
_PAIRED = (
    rf"{_WISHED}[^\n]{{0,300}}?(?<![\w.]){_CERTAIN}[\"']?[ ]?[=:][ ]?[\"']?"
    r"(?:[0-9\[]|N/A|No|Yes|Active|Enabled|Disabled|0{0,4}[0-9A-F]{4}:)"
)
ANY_LINE = rf"^(?:{_UNHEADED}|{_PAIRED})"
_ROW_ALONE, _PAIRS = re.compile(_UNHEADED), re.compile(_PAIRED)
_PAIR = re.compile(r"(?<![\w.])[\"']?([A-Za-z][\w.]{1,60})[\"']?[ ]?[=:](?=[ ]?[\"']?[\w\[-])")
_DOTTED = {name.replace(".", "_"): name for name in WANTED if "/" not in name and name.islower()}
_INDEXES = ("gpu", "gpu_index", "gpu_id", "device_index")
_UNNAMED = "rows of nvidia-smi --query-gpu without the line of column names; known by their cells: {}"
_HOW = "paste the first line, with the names of the columns, or the command with --query-gpu="


def read(part: Part) -> Iterator[Record]:
    """The `Driver`, and a `Gpu` per line. A truncated line gives all columns except its last one."""
    columns: list[str] = []
    order: int | None = None  # of the row below the names of the columns
    blocks: dict[tuple[str, ...], str] = {}
    lines = part.text.split("\n")
    for number, line in enumerate(lines):
        cells = [cell.strip() for cell in line.split(",")[: _MOST_COLUMNS + 1]]
        if _HEAD.match(line):
            columns, order = [_UNIT.sub("", name) for name in cells[:_MOST_COLUMNS]], 0
            continue
        if "noheader" in line and (query := _QUERY.search(line)):
            columns, order = [name.strip() for name in query["columns"].split(",")], 0
        elif _PAIRS.match(line):
            names, values = _named(line)
            columns = []
            yield from _row(names, values, partial(_block, blocks, values), part.cite(number, line), part.at)
        elif _ROW_ALONE.match(line) and len(cells) != len(columns) and not (columns and number == len(lines) - 1):
            columns, order = _columns((lines[place] for place in range(number, len(lines))), len(cells)), None
            yield _unnamed(columns, part.where(number))
        elif columns and number == len(lines) - 1 and 2 < len(cells) < len(columns):
            cells.pop()
            yield part.cut(number, f"after {len(cells)} of {len(columns)} columns")
        elif len(cells) != len(columns) and len(cells) > 1:  # a line without a comma can be of another program
            columns = []  # end of the table
        if len(cells) == len(columns) and not _PER_PROCESS & set(columns):
            unnumbered = partial(_block, blocks, cells) if order is None else partial(str, f"gpu{order}")
            yield from _row(columns, cells, unnumbered, part.cite(number, line), part.at)
            yield from refused_cells(part, number, dict(zip(columns, cells, strict=False)))
            order = None if order is None else order + 1


def _block(blocks: dict[tuple[str, ...], str], cells: Sequence[str]) -> str:
    """The key of a GPU whose number and address are not known. The same cells again are of the same GPU."""
    return blocks.setdefault(tuple(cells), f"gpu, block {len(blocks) + 1}" if blocks else "gpu")


def _columns(lines: Iterable[str], count: int) -> list[str]:
    """The names of the columns of the rows at the beginning of the lines, each with this number of cells."""
    rows: list[list[str]] = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != count or not all(map(_CELL.fullmatch, cells)):
            break
        rows.append(cells)
    columns = shaped_columns(rows, _SHAPES, LOST)
    if is_index([row[0] for row in rows]) and columns[1] in ("name", "uuid", "pci.bus_id"):
        columns[0] = "index"
    whole = [row for row in rows if not any(map(LOST.fullmatch, row))]
    if widths := link_widths(whole):
        # With the product, a narrow link is a certain fault. The shapes of numbers alone do not make it certain.
        columns = ["" if name == "name" else name for name in columns]
        columns[widths[0]], columns[widths[1]] = "pcie.link.width.current", "pcie.link.width.max"
    return [name or f"column {place}" for place, name in enumerate(columns, 1)]


def _unnamed(columns: Sequence[str], path: str) -> NotChecked:
    known = ", ".join(name for name in columns if not name.startswith("column "))
    why = _UNNAMED.format(known or "none")
    return NotChecked(what="--query-gpu", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=_HOW)


def _named(line: str) -> tuple[list[str], list[str]]:
    """The names and the values of a line with pairs of them. Other programs write "_" for "."."""
    found = list(_PAIR.finditer(line))
    ends = [*(one.start() for one in found[1:]), len(line)]
    texts = [line[one.end() : end].strip(" \t,;|{}\"'") for one, end in zip(found, ends, strict=True)]
    texts = [text.replace("\\ ", " ") for text in texts]
    values = [text[:-1] if re.fullmatch("[0-9]{1,18}i", text) else text for text in texts]  # an integer of InfluxDB
    names = (one[1].lower() for one in found)
    return ["index" if name in _INDEXES else _DOTTED.get(name, name) for name in names], values


def _row(
    columns: Sequence[str], cells: Sequence[str], unnumbered: Callable[[], str], where: Evidence, at: float
) -> Iterator[Record]:
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
    key = f"gpu{int(numbered[0])}" if numbered else address or unnumbered()
    texts = {name: (text, where) for name, text in values.items() if name in WANTED or LOST.fullmatch(text)}
    yield from facts(Card(key=key, address=address, texts=texts), at)
