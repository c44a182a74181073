"""Tables of `amd-smi topology` and `amd-smi xgmi`: one row and one column for each GPU, labeled with its PCI address.

https://github.com/ROCm/amdsmi, amdsmi_cli: topology(), xgmi(). Since version 7 the columns have the names "GPU0" etc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ....models.facts.units import from_gigabits
from ..core.part import Part
from .amd_links import XGMI, Connection

HEADS = r"(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|CACHE COHERENCY|ATOMICS|DMA|BI-DIRECTIONAL|LINK METRIC) TABLE"
_HEAD = re.compile(rf"[ \t]*({HEADS}):[ \t]*")
_ADDRESS = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_COLUMN = re.compile(rf"{_ADDRESS}|GPU[0-9]{{1,3}}")
_ROW = re.compile(rf"[ \t]*(?:GPU([0-9]{{1,3}})[ \t]+)?({_ADDRESS})[ \t]+(\S.*)")
_METRIC = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?Gb/s[ \t]*([0-9]{1,6}) ?Gb/s[ \t]*(XGMI|PCIE)[ \t]*")
_LANES = 16  # of an xGMI link; links with fewer lanes have a lower max_bandwidth
_VALUE = re.compile(r"[A-Z0-9/.-]+")
_READ = re.compile(r"\s*Read(?!.*Write).*")
_SPAN = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_KINDS = (XGMI, "PCIE")


def connections(part: Part, lines: Sequence[str], first: int) -> Iterator[tuple[int, str, dict[int, Connection]]]:
    """For each GPU: its number, its PCI address and its connections by peer.

    `first` is the number of the first line.
    """
    found: dict[str, dict[int, Connection]] = {}
    order: dict[str, None] = {}  # PCI addresses
    table, columns, rate, last = "", 0, None, ""
    for number, line in enumerate(lines, first):
        if head := _HEAD.fullmatch(line):
            table, columns = head[1].removesuffix(" TABLE"), 0
        elif table and not columns and (names := _COLUMN.findall(line)):
            columns = len(names)
        elif table and (row := _ROW.fullmatch(line)):
            last = row[2]
            order.setdefault(last)
            if table == "LINK METRIC":
                rate = _METRIC.fullmatch(row[3])
                continue
            where = part.cite(number, line)
            own, cells = found.setdefault(row[2], {}), row[3].split()
            if len(cells) < columns or any(map(_VALUE.fullmatch, cells[columns:])):
                continue  # a name of a column or a value is missing, so the places of the others are unknown
            for peer, cell in enumerate(cells[:columns]):
                own[peer] = _cell(own.get(peer, Connection(where)), table, cell)
        elif table == "LINK METRIC" and rate and rate[3] == XGMI and _READ.fullmatch(line):
            where = part.cite(number, line)
            own = found.setdefault(last, {})
            for peer, cell in enumerate(re.findall(r"N/A|[0-9.]{1,12} [KMGTP]?B", line)):
                if cell != "N/A" and peer not in own:
                    own[peer] = Connection(where, XGMI, hops=1, rate=_rate(rate))
        elif _COLUMN.search(line):  # the columns of another table, whose name is missing
            table = ""
    for gpu, address in enumerate(order):
        yield gpu, address, {peer: one for peer, one in found.get(address, {}).items() if peer != gpu}


def _rate(found: re.Match[str]) -> float:
    """The rate of one link. max_bandwidth is that of the product; bit_rate is that of a lane at present."""
    return from_gigabits(min(float(found[2]), _LANES * float(found[1]) or float(found[2])))


def _cell(known: Connection, table: str, cell: str) -> Connection:
    """The connection with the value of one table cell added."""
    if table == "LINK TYPE" and cell in _KINDS:
        return replace(known, kind=cell)
    if table == "ACCESS" and cell in ("ENABLED", "DISABLED"):
        return replace(known, access=cell == "ENABLED")
    if table in ("HOPS", "WEIGHT") and re.fullmatch("[0-9]{1,4}", cell):
        return replace(known, hops=int(cell)) if table == "HOPS" else replace(known, weight=int(cell))
    if table == "NUMA BW" and (span := _SPAN.fullmatch(cell)):
        return replace(known, min_bandwidth=int(span[1]), max_bandwidth=int(span[2]))
    return known
