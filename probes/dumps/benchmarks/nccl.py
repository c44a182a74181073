"""Tables of nccl-tests (all_reduce_perf etc.): https://github.com/NVIDIA/nccl-tests, src/common.cu.

If NCCL_DEBUG is set, lines of the library's log (jobs/nccl_log.py) precede the table and appear between its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from ....models.facts.gpu import Gpu
from ....models.facts.records import Evidence, Flow, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.columns import Row, cut_row, rows
from ..core.part import Part
from ..jobs import nccl_log, nccl_printed
from . import nccl_commands

# Launchers put the rank before each line: mpirun "[1,0]<stdout>:", srun and torchrun "0:".
_PREFIX = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:|\d+: ?)\s*")
_RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d+)\b.*?\bon\s+(?P<host>\S+)\s+device\s+(?P<device>[0-9]{1,4})\s+"
    r"\[(?P<bus>[0-9a-fx:.]+)\]\s+(?P<name>\S.*)"
)
NAME = re.compile(rf"\b({nccl_commands.OPS})_perf\b")
OPS = {op.replace("_", ""): op for op in nccl_commands.OPS.split("|")}  # without separators, as in files of results
_BUS = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?")
# From 1000 on, numbers have one decimal place, then none (getFloatStr). A truncated row has fewer cells than columns.
_RATE = re.compile(r"[0-9]{1,3}\.[0-9]{2,4}|[0-9]{4,6}(?:\.[0-9]{1,4})?")
_UNHEADED = re.compile(
    r"^[^\n]{0,40}[0-9][ \t|]+[0-9]{1,15}[ \t|]+[a-z0-9_]{4,14}[ \t|]+(?:sum|prod|max|min|avg|mulsum|none)\b", re.M
)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}$")  # the last column with -S 1
_TYPES = r"(?:float|double|half|bfloat16|u?int(?:8|32|64)|fp?8_?e[0-9]\w{2,6})"
_GAP = r"[ \t|]{1,20}"
_AFTER = frozenset({"busbw", "#wrong", "wrong", "error", "time", "cputime", "algbw"})  # columns after busbw
_TYPE = re.compile(_TYPES)
_SIZE = re.compile(r"[0-9]{1,18}")
_TIME = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")
_ROUNDED = 0.02  # largest relative error of a product of two rounded numbers in a row of a long message
_MOST_RANKS = 4096  # largest number of ranks that two rounded bandwidths can determine
Measured: TypeAlias = tuple[int, float, float, Evidence]  # size, algorithm bandwidth and bus bandwidth in GB/s


class _Table(Struct, frozen=True):
    """The rows below a heading, and the lines between this heading and the one before."""

    columns: list[str]
    op: str | None
    ranks: int
    rows: list[Measured] = field(default_factory=list)


# An output begins with the first lines of nccl-tests, the heading of a table, or a line of NCCL's log. With NCCL_DEBUG,
# log lines appear between rows. Launchers put the rank before each line.
_LOG = (" NCCL INFO ", " NCCL WARN ")
_AHEAD = r"^[ \t|]*(?:(?:\[\d+,\d+\]<std(?:out|err)>:|\d{1,5}:)[ \t]*)?"
BEGIN = (
    rf"{_AHEAD}\#[ \t]*(?:nThread[ ]\d|nccl-tests version|Using devices|Collective test starting"
    r"|rccl-tests version|[ \t|]{0,8}Rank[ \t|]+\d)"
    rf"|{_AHEAD}(?:\#[ \t|]*)?size[ \t|]+(?:count|time)[ \t|][^\n]{{0,300}}?\balgbw\b[^\n]{{0,100}}?\bbusbw\b"
    # A row without the heading
    rf"|{_AHEAD}[0-9]{{1,15}}{_GAP}[0-9]{{1,15}}{_GAP}{_TYPES}{_GAP}(?:sum|prod|max|min|avg|mulsum|none|all){_GAP}"
    rf"[-0-9.]{{1,14}}{_GAP}[0-9.]{{1,12}}{_GAP}[0-9.]"
    rf"|^{nccl_commands.BEGIN}"
    rf"|{nccl_log.BEGIN}"
)
_BELOW_ONE = ("all_gather", "reduce_scatter", "alltoall")  # collectives whose busbw is lower than their algbw
_ABOVE_ONE = 1.01  # both numbers are rounded
ANY_LINE = nccl_log.ANY_LINE
LINES = True


def read(part: Part) -> Iterator[Record]:
    """A GPU for each rank on the first host, the bus bandwidth of each size (out of place), and the facts in
    the log.
    """
    # A log without a table can have millions of lines.
    if "busbw" in part.text or " Rank " in part.text or _UNHEADED.search(part.text):
        yield from _read_tables(part)
    yield from nccl_log.read(part)
    yield from nccl_printed.rates(part)


def _read_tables(part: Part) -> Iterator[Record]:
    tables: list[_Table] = []
    op, ranks, host = None, set[str](), None
    texts = part.text.split("\n")
    for found in rows(part, _heading, _guess, _plain):
        if isinstance(found, Row):
            cite = part.cite(found.number, _PREFIX.sub("", texts[found.number].strip()))
            if not found.cells or not tables:
                whole = ranks == {str(number) for number in range(len(ranks))}
                tables.append(_Table(found.columns, op, len(ranks) if whole else 0))
                op, ranks = None, set()
            if row := _row(found.columns, found.cells):
                tables[-1].rows.append((*row, cite))
            continue
        number, plain = found
        if any(mark in plain for mark in _LOG):
            continue
        if rank := _RANK.match(plain):
            ranks.add(rank["rank"])
            host = host or rank["host"]
            if rank["host"] == host:
                yield gpu(int(rank["device"]), rank["name"], rank["bus"], part.cite(number, plain))
        if named := NAME.search(plain):
            op = named[1]
    if tables and tables[-1].rows:
        yield from cut_row(part, tables[-1].columns, _plain, words=True)
    names = set(NAME.findall(part.text)) if tables else set[str]()
    for table in tables:
        yield from bandwidths(part, table.rows, table.op or (min(names) if len(names) == 1 else None), table.ranks)


def bandwidths(part: Part, measured: Sequence[Measured], op: str | None, ranks: int) -> Iterator[Observation]:
    """The bus bandwidth of each size. `op` and `ranks`: None and 0 if unknown."""
    if not measured:
        return
    _, algorithm, bus, _ = max(measured, key=lambda row: row[0])
    op, implied = _collective(op, algorithm, bus)
    ends = tuple(f"rank{rank}" for rank in range(ranks or implied))
    for size, _, bus, evidence in measured:
        yield part.rate(Flow(op, ends, size), from_gigabytes(bus), evidence, "bus_bandwidth")


def _plain(line: str) -> str:
    return _TIMESTAMP.sub("", _PREFIX.sub("", line.strip())).rstrip()


def _heading(line: str) -> list[str] | None:
    words = [word for word in line.lstrip("# ").split() if word != "timestamp"]
    if words[:1] != ["size"] or not {"algbw", "busbw"} <= set(words) or not {"time", "cputime"} & set(words):
        return None
    if words.index("busbw") != words.index("algbw") + 1:  # a damaged name, in both halves of the columns
        return None
    return words if set(words[words.index("busbw") :]) <= _AFTER else None


def _guess(cells: tuple[str, ...]) -> list[str] | None:
    """The columns of a row without a heading: the time in µs and the algorithm bandwidth give the size."""
    if len(cells) < 6 or not _TYPE.fullmatch(cells[2]) or not _SIZE.fullmatch(cells[0]):
        return None
    for place in (4, 5):
        columns = ["size", "count", "type", "redop", "root"][:place] + ["time", "algbw", "busbw"]
        values = cells[place : place + 3]
        if len(values) < 3 or not all(_RATE.fullmatch(one) for one in values[1:]) or not _TIME.fullmatch(values[0]):
            continue
        moved = float(values[0]) * 1e-6 * float(values[1]) * 1e9
        if (size := int(cells[0])) and abs(moved / size - 1) < _ROUNDED:
            return columns + [""] * (len(cells) - len(columns))
    return None


def _row(columns: Sequence[str], cells: Sequence[str]) -> tuple[int, float, float] | None:
    """Size in bytes, algorithm bandwidth and bus bandwidth in GB/s from a table row. None for other lines."""
    size = cells[0].replace("_", "") if cells else ""
    if not _SIZE.fullmatch(size) or not int(size):
        return None
    algorithm, bus = cells[columns.index("algbw")], cells[columns.index("busbw")]
    return (int(size), float(algorithm), float(bus)) if _RATE.fullmatch(algorithm) and _RATE.fullmatch(bus) else None


def _collective(op: str | None, algorithm: float, bus: float) -> tuple[str, int]:
    """The collective and its number of ranks, from its name and busbw / algbw of the largest size.

    The ratio is 2(n-1)/n for all_reduce, the only one above 1. It is (n-1)/n for all_gather, reduce_scatter and
    alltoall. It is 1 for the others and does not depend on their ranks (doc/PERFORMANCE.md of nccl-tests).
    """
    ratio = bus / algorithm if algorithm else 0.0
    if op in _BELOW_ONE and ratio > _ABOVE_ONE:
        op = None  # the name of another table: its own line is missing
    if op == "all_reduce" or (op is None and 1 < ratio < 2):
        return "all_reduce", _ranks(ratio / 2)
    return op or "collective", _ranks(ratio)


def _ranks(share: float) -> int:
    """The n for which (n-1)/n is `share`; 1 if there is none."""
    return min(_MOST_RANKS, max(2, round(1 / (1 - share)))) if 0 < share < 1 else 1


def gpu(number: int, name: str, bus: str, line: Evidence) -> Gpu:
    """The GPU of a rank. Recent versions print its bus as 0000:53:00, older ones as 0x53, RCCL as 0000:53:00.0."""
    found = _BUS.fullmatch(bus)
    address = f"{found[1]}{found[2] or '.0'}" if found else None
    return Gpu(key=f"gpu{number}", name=name.strip(), address=address, cites={"name": line})
