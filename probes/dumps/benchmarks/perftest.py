"""perftest (ib_write_bw, ib_read_bw, ib_send_bw and their *_lat): its tables, and the JSON of --out_json.

https://github.com/linux-rdma/perftest. The JSON has no unit for its rates; the reader computes them from messages per
second.

The other end is another machine or this one. The output does not show whether the client or the server printed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB, from_gigabits
from ..core.columns import Row, rows
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part

_DASHES = r"[ \t]{0,8}-{40,}[ \t]*\n(?:[ \t.]*\n){0,2}"
# "ib_write_bw -d mlx5_3 -i 1 -b --use_cuda=0": the command names the device, also in a sentence
_COMMAND = (
    r"\bib_(?P<op>write|read|send)_(?:bw|lat)\b[^\n`]{0,200}?[ ](?:-d[ ]?|--ib-dev[ =])(?P<device>[A-Za-z][\w.-]{1,40})"
    r"[^\n`]{0,200}"
)
_PROMPT = r"(?:[^\n`]{0,80}`|[ \t>]{0,8}(?:\S{0,60}[$#%>][ ]?|sudo |numactl \S{1,40} |taskset (?:-c )?\S{1,20} ){0,3})"
_RUN = (  # a sentence with the rate of the run is no line of this tool
    rf"{_PROMPT}(?:\S{{0,40}}/)?ib_(?:write|read|send)_(?:bw|lat)[ ]"
    r"(?![^\n]{0,300}[0-9][ ]?[GM]i?[Bb](?:it)?(?:/s|ps))"
    r"[^\n`]{0,200}?(?:-d[ ]?|--ib-dev[ =])[A-Za-z]"
)
_TITLE = r"(?:RDMA_(?:Write|Read)|Send)(?:[ _][A-Za-z_ ]{1,60})? Test"
# If two processes write into one file (loopback), a block can begin anywhere.
_HEADED = (
    r"(?:ibv_wr\* API|CQ Moderation|Data ex\. method|rdma_cm QPs|Max inline data|PCIe relax order|Dual-port"
    r"|Number of qps)[ \t]{1,8}: "
)
_HEADING = r"#bytes[ \t|]+#iterations[ \t|]"
# Lines of dashes surround each block. The reader includes those before and after it.
_TABLE = (
    rf"{_HEADING}[^\n]*(?:(?:\n(?:[ \t]*[0-9][^\n]*|Conflicting CPU [^\n]*)?){{1,64}}\n[ \t]{{0,8}}-{{40,}}[ \t]*$)?"
)
_FIRST = rf"[ \t|]{{0,60}}(?:{_TITLE}[ \t]*$|(?:local|remote) address: LID|{_HEADED}|{_TABLE})"
BEGIN = (
    r"^(?:[ ]?WARNING: BW peak won't be measured|de(?:allocating GPU buffer|stroying current CUDA Ctx)"
    r"|[ \t]*\{\s{0,20}\"?test_info\"?[ ]?:|\*{30,}[ \t]*\n\*[ ]Waiting for client|initializing CUDA[ \t]*$|"
    r"[ \t|]{0,8}[0-9]{1,12}[ \t|]{1,20}[0-9]{1,9}[ \t|]{1,24}[0-9]{1,7}\.[0-9]{2}[ \t|]{1,24}[0-9]{1,7}\.[0-9]{2}"
    r"[ \t|]{1,24}[0-9]{1,6}\.[0-9]{6}[ \t|]{0,8}$|"
    rf"Listing all CUDA devices in system|{_RUN}|(?:{_DASHES}){{0,3}}{_FIRST})"
)
_TITLED = re.compile(
    r"\s*(?P<op>RDMA_Write|RDMA_Read|Send)\b(?P<two> [A-Za-z_ ]{0,40}Bidirectional)?[A-Za-z_ ]{0,40} Test\s*"
)
_DEVICE = re.compile(r"\bDevice[ \t]*: (?P<device>[\w.-]{1,64})\s*$")
_BOTH = frozenset({"-b", "--bidirectional"})
_GPU = re.compile(r"CUDA device (?P<number>[0-9]{1,3}): PCIe address is (?P<bus>[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\b")
_PICKED = re.compile(r"Picking device No\. (?P<number>[0-9]{1,3})\b")
_COLUMN = re.compile(r"(?P<name>#?[\w.%]+(?: [a-z]+)?)(?:\[(?P<unit>[^\]]{1,12})\])?")
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_IN_ROW = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,8}")  # also fused numbers
_JSON = re.compile(r"^[ \t]*\{\s{0,20}\"test_info\"", re.MULTILINE)
_NAMED = re.compile(r"(?:rdma_)?(?P<op>write|read|send)\b[a-z_ ]{0,60}")
_LARGEST = 1 << 40  # bytes of a message
_FASTEST = 1e9  # bytes per microsecond
_OPS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send"}
# Bytes per unit. perftest divides by 0x100000 for both MB and MiB (src/perftest_resources.c).
_UNITS = {"Gb/sec": from_gigabits(1), "MB/sec": float(MIB), "MiB/sec": float(MIB), "usec": 1e-6}


Columns: TypeAlias = tuple[tuple[str, str], ...]  # name and unit of each column of a table
_RATES = ("#bytes", "#iterations", "BW peak", "BW average", "MsgRate")
_MESSAGES = re.compile(r"[0-9]{1,6}\.[0-9]{6}")  # millions per second
_FUSED = re.compile(r"\.[0-9]{2}(?=[0-9]{1,9}\.)")  # rates and latencies have two decimal places
_ROUNDED = 0.02  # relative error of a product of rounded numbers


@cache
def _command() -> re.Pattern[str]:
    return re.compile(_COMMAND)


class _Test(Struct):
    """The lines of a test before its table."""

    op: str | None = None
    both: bool = False  # bidirectional: the rate is the sum of both directions
    device: str | None = None
    gpu: str | None = None  # the GPU whose memory is used: its PCI address or its CUDA number
    columns: Columns = ()


def read(part: Part) -> Iterator[Record]:
    """The average rate, or the typical latency, of each message size."""
    yield from _documents(part)
    test, places, picked, headed = _Test(), dict[str, str](), None, False
    unread: int | None = None
    lines = part.text.split("\n")
    for found in rows(part, _heading, _guess, extra=True, fused=_FUSED):
        if isinstance(found, Row):
            if not found.cells or not headed:
                test.gpu, picked = places.get(picked or "", f"gpu{picked}") if picked else None, None
                yield from _nameless(part, found.number, test)
                headed = True
            test.columns = found.columns
            if found.cells and (flow := _flow(test)):
                yield from _row(part, found, test, flow, part.cite(found.number, lines[found.number]))
            continue
        number, line = found
        cells = line.split()
        if unread is None and len(cells) > 2 and all(map(_IN_ROW.fullmatch, cells)):
            unread = number
        if titled := _TITLED.fullmatch(line):
            test = _Test(op=_OPS[titled["op"]], both=bool(titled["two"]))
        elif command := _command().search(line):
            both = not _BOTH.isdisjoint(command[0].split())
            test = _Test(op=command["op"], both=both, device=command["device"])
        elif gpu := _GPU.search(line):
            places[gpu["number"]] = f"0000:{gpu['bus'].lower()}.0"
        elif found_gpu := _PICKED.search(line):
            picked = found_gpu["number"]
        elif device := _DEVICE.search(line):
            test.device = device["device"]
    end = list(_end(part, test))
    yield from end or _unread(part, unread, lines, headed)


def _unread(part: Part, number: int | None, lines: Sequence[str], headed: bool) -> Iterator[NotChecked]:
    """A gap for a row that does not fit the heading, or has none."""
    if number is not None:
        lacks = "has not a value for each column" if headed else "has no heading, so its unit is not known"
        yield NotChecked(
            what="Observation",
            subject="node",
            reason=Reason.INCOMPLETE,
            path=part.where(number),
            detail=f"{lines[number].strip()[:60]!a} {lacks}",
            how="keep the whole output of the tool, with the line that begins with #bytes",
        )


def _heading(line: str) -> Columns | None:
    """Name and unit of each column of a heading."""
    if not line.startswith("#bytes"):
        return None
    columns = tuple((cell["name"], cell["unit"] or "") for cell in _COLUMN.finditer(line))
    return columns if all(name[0] in "#Bt9M" for name, _ in columns) else None


def _guess(cells: tuple[str, ...]) -> Columns | None:
    """The columns of a row of rates without a heading: the messages per second give the unit."""
    if len(cells) != len(_RATES) or not all(map(_NUMBER.fullmatch, cells)) or not _MESSAGES.fullmatch(cells[4]):
        return None
    moved, average = float(cells[0]) * float(cells[4]) * 1e6, float(cells[3])
    for unit in ("Gb/sec", "MiB/sec"):
        if moved and abs(average * _UNITS[unit] / moved - 1) < _ROUNDED:
            return tuple((name, unit) for name in _RATES)
    return None


def _end(part: Part, test: _Test) -> Iterator[NotChecked]:
    """Whether the text ends within a table row."""
    whole = part.text.rstrip()
    cells = whole[whole.rfind("\n") + 1 :].split()
    if cells and len(cells) < len(test.columns) and all(map(_NUMBER.fullmatch, cells)):
        yield part.cut(whole.count("\n"), f"after {len(cells)} of {len(test.columns)} columns")


def _documents(part: Part) -> Iterator[Record]:
    """The rate of each JSON document: bytes moved per second."""
    for document in documents(part, _JSON):
        if isinstance(document, NotChecked):
            yield document
            continue
        members = object_of(document.value)
        info, results = object_of(members.get("test_info")), members.get("results")
        titled = _NAMED.match(str(info.get("test")).lower())
        device = info.get("Device", info.get("device"))
        for one in map(object_of, list_of(results) or [results]):
            size, rate = one.get("MsgSize"), one.get("MsgRate")
            if not (titled and isinstance(device, str) and re.fullmatch(r"[\w.-]{1,64}", device)):
                continue
            test = _Test(op=titled["op"], both="bidirectional" in titled[0], device=device)
            if (
                isinstance(size, int)
                and isinstance(rate, int | float)
                and 0 < size < _LARGEST
                and 0 < rate < _FASTEST / size
                and (flow := _flow(test))
            ):
                value = size * rate * 1e6 / (2 if test.both else 1)
                cite = Evidence(part.where(document.line), f"MsgSize {size}, MsgRate {rate:g}")
                yield part.rate(Flow(flow.op, flow.ends, size, beside=flow.beside), value, cite)


def _nameless(part: Part, number: int, test: _Test) -> Iterator[NotChecked]:
    if not (test.op and test.device):
        lacks = "the command" if test.device else "the device"
        why = f"no line before the perftest table names {lacks}"
        yield NotChecked(
            what="Observation",
            subject="node",
            reason=Reason.UNREADABLE,
            path=part.where(number),
            detail=why,
            how="keep the whole output of the tool",
        )


def _flow(test: _Test) -> Flow | None:
    """The flow from the NIC or the GPU to the wire; for reads, in the other direction. The port is 1 if not stated."""
    if not (test.op and test.device):
        return None
    ends = (test.gpu or test.device, f"{test.device}/1")
    if test.op == "read":
        ends = ends[::-1]
    return Flow(test.op, ends, beside=(ends[::-1],) if test.both else ())


def _row(part: Part, row: Row[Columns], test: _Test, flow: Flow, cite: Evidence) -> Iterator[Observation]:
    """The rate or the latency of a row of numbers."""
    names = [name for name, _ in test.columns]
    if not all(_NUMBER.fullmatch(cell) for cell in row.cells):
        return
    for name, quantity, unit in (("BW average", "rate", "bytes_per_second"), ("t_typical", "latency", "seconds")):
        factor = _UNITS.get(dict(test.columns).get(name, ""))
        value = float(row.cells[names.index(name)]) * factor if factor else 0.0
        size = int(float(row.cells[0]))
        if value and size:
            yield Observation(
                about=Flow(flow.op, flow.ends, size, beside=flow.beside),
                quantity=quantity,
                unit=unit,
                value=value / 2 if test.both and quantity == "rate" else value,
                at=part.at,
                busy=True,
                evidence=cite,
            )
