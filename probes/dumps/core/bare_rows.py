"""Rows of tables whose heading is missing, if their cells do not say what they mean.

No value of such a row is used. The gap names the tool and what to paste with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from ..lines.markup import cells_of
from .part import Part

_B = r"[ \t]+"
_INTEGER, _PLACES, _TWO_PLACES = r"[0-9]{1,18}", r"[0-9]{1,9}\.[0-9]{1,2}", r"[0-9]{1,9}\.[0-9]{2}"
_MESSAGE = rf"(?:{_B}[0-9]{{1,6}}\.[0-9]{{3,9}})?"
_VALUE = (
    r"(?:-?[0-9]{1,9}(?:\.[0-9]{1,4})?(?: (?:MiB|W|MHz|%|C))?|\[[A-Z][\w /]{1,30}\]|N/A|(?:En|Dis)abled|P[0-9]{1,2})"
)
_NUMBER = r"(?:N/A|-?[0-9]{1,18}(?:\.[0-9]{1,6})?)"
# Each cell fits one form: two ways for each cell would take exponential time
_WORD = r"(?!GPU-|[0-9]+(?:[ \t.]|$))[A-Z0-9][\w-]{1,30}"
_CELL = rf"(?:{_NUMBER}|GPU-[0-9a-f-]{{8,40}}|[0-9A-F]{{8}}:[0-9A-F]{{2}}:[0-9A-F]{{2}}\.[0-7]|{_WORD})"
_PATH = r"(?:X|PIX|PXB|PHB|NODE|SYS|NV[0-9]{1,2})"
_LONGEST = 400  # characters of a row
_MOST_LINES = 20_000  # that are searched


class BareRow(Struct, frozen=True):
    """The rows of a table. `lacks`: what only the heading says."""

    table: str
    row: str  # an expression for the whole line, without blanks at its ends
    lacks: str
    how: str
    example: str


BARE_ROWS = (
    BareRow(
        "dcgmi dmon",
        rf"(?=\S+{_B}\S+{_B}(?:.*[ \t])?{_NUMBER}(?:[ \t]|$))(?:GPU(?:-C?I)?|Switch|CPU|Link){_B}[0-9]{{1,4}}"
        rf"(?:{_B}{_CELL}){{1,40}}",
        "the fields of the columns",
        "paste the line that begins with #Entity, or the command with its -e",
        "GPU 0     37    1410    0.953",
    ),
    BareRow(
        "perftest (ib_write_bw, ib_read_bw, ib_send_bw)",
        rf"{_INTEGER}{_B}{_INTEGER}(?:{_B}{_TWO_PLACES}){{2}}{_MESSAGE}",
        "the unit, the direction and the device",
        "paste the output from its title (RDMA_Write BW Test), with the line that begins with #bytes",
        "1048576    1000    187.40    187.31",
    ),
    BareRow(
        "perftest (ib_write_lat, ib_read_lat, ib_send_lat)",
        rf"{_INTEGER}{_B}{_INTEGER}(?:{_B}{_TWO_PLACES}){{7}}",
        "the direction and the device",
        "paste the output from its title (RDMA_Write Latency Test), with the line that begins with #bytes",
        "8   1000   1.71   6.02   1.75   1.77   0.06   2.01   3.40",
    ),
    BareRow(
        "nvbandwidth or p2pBandwidthLatencyTest",
        rf"[0-9]{{1,3}}(?=.*{_B}[0-9]{{1,5}}\.)(?:{_B}(?:{_PLACES}|N/A)){{2,72}}",
        "the test, its direction and the unit",
        "paste the output with the title of the matrix and the line with the numbers of its columns",
        "1   370.15    N/A   371.02   370.44",
    ),
    BareRow(
        "nvidia-smi --query-gpu",
        rf"(?=.*(?: (?:MiB|W|MHz|%)|, ?\[)){_VALUE}(?:, ?{_VALUE}){{1,60}}",
        "the names of the columns",
        "paste the first line, with the names of the columns, or the command with --query-gpu=",
        "3, 41, 98.20 W, 512 MiB",
    ),
    BareRow(
        "nvidia-smi dmon",
        rf"(?=.*[ \t]-(?:[ \t]|$))[0-9]{{1,2}}(?:{_B}(?:[0-9]{{1,6}}|-)){{7,24}}",
        "the names of the columns",
        "paste the lines that begin with #",
        "0    68    34    -    0    0    0    0    0    0   2619   345",
    ),
    BareRow(
        "nvidia-smi topo -m",
        rf"(?:NIC[0-9]{{1,3}}|mlx[45]_[0-9]{{1,3}})(?:{_B}{_PATH}){{2,90}}",
        "which columns are GPUs",
        "paste the whole matrix, with its first line",
        "NIC0  PIX  PXB  SYS  SYS  X",
    ),
    BareRow(
        "df",
        rf"\S{{1,200}}(?:{_B}{_INTEGER}){{3}}{_B}[0-9]{{1,3}}%{_B}/\S{{0,200}}",
        "the size of a block",
        "paste the first line, or the output of df -h",
        "tmpfs   16384   0   16384   0% /dev/shm",
    ),
    BareRow(
        "numactl -H",
        rf"[0-9]{{1,3}}:(?:{_B}[0-9]{{2,3}}){{1,64}}",
        "that the numbers are distances of NUMA nodes",
        "paste the output from the line 'node distances:'",
        "1:  21  10",
    ),
)
_ROWS = re.compile("|".join(f"(?P<r{number}>{one.row})" for number, one in enumerate(BARE_ROWS)))


def bare_row(line: str) -> BareRow | None:
    """The table to which a line without its heading belongs."""
    text = cells_of(line).strip()
    found = _ROWS.fullmatch(text) if len(text) <= _LONGEST else None
    return BARE_ROWS[int((found.lastgroup or "r0")[1:])] if found else None


def bare_rows(part: Part) -> tuple[list[NotChecked], bool]:
    """A gap for the rows of each table, and whether the part has no other line with a letter or a digit."""
    first: dict[str, NotChecked] = {}
    only = True
    for number, line, one in _known(part):
        only = only and one is not None
        if one and one.table not in first:
            why = f"{line.strip()[:60]!a} is a row of {one.table} without its heading: {one.lacks} cannot be known"
            first[one.table] = NotChecked(
                what=one.table,
                subject="node",
                reason=Reason.INCOMPLETE,
                path=part.where(number),
                detail=why,
                how=one.how,
            )
    return list(first.values()), only


def _known(part: Part) -> Iterator[tuple[int, str, BareRow | None]]:
    """The lines with a letter or a digit. The number of a row can look like that of the line, which was removed."""
    lines = [
        (number, line, part.before.get(part.first + number, line))
        for number, line in islice(part.lines(), _MOST_LINES)
        if any(map(str.isalnum, line))
    ]
    yield from ((number, whole, bare_row(line) or bare_row(whole)) for number, line, whole in lines)
    yield from ((number, line, None) for number, line in islice(part.lines(), _MOST_LINES, _MOST_LINES + 1))
