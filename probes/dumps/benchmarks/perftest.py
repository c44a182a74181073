"""perftest (ib_write_bw, ib_read_bw, ib_send_bw and their *_lat): its tables, and the JSON of --out_json.

https://github.com/linux-rdma/perftest. The JSON has no unit for its rates; the reader computes them from messages per
second.

The other end is another machine or this one. The output does not show whether the client or the server printed it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Record
from ....models.facts.units import MIB, from_gigabits
from ..core.json_values import each_document, member, number, objects
from ..core.part import Part
from ..core.read_tool import read_rows, read_tool
from ..core.tables import Case, Columns, Line, Table, Tool, Values

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
_GPU = re.compile(r"CUDA device (?P<number>[0-9]{1,3}): PCIe address is (?P<bus>[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\b")
_JSON = re.compile(r"^[ \t]*\{\s{0,20}\"test_info\"", re.MULTILINE)
_NAMED = re.compile(r"(?:rdma_)?(?P<op>write|read|send)\b[a-z_ ]{0,60}")
_COLUMN = re.compile(r"(?P<name>#?[\w.%]+(?: [a-z]+)?)(?:\[(?P<unit>[^\]]{1,12})\])?")
_RATES = ("#bytes", "#iterations", "BW peak", "BW average", "MsgRate")
_RATE_ROW = re.compile(r"[0-9]{1,18}( [0-9]{1,18}(?:\.[0-9]{1,9})?){3} [0-9]{1,6}\.[0-9]{6}")  # millions per second
_LARGEST = 1 << 40  # bytes of a message
_FASTEST = 1e9  # bytes per microsecond
_ROUNDED = 0.02  # relative error of a product of rounded numbers
# Bytes per unit. perftest divides by 0x100000 for both MB and MiB (src/perftest_resources.c).
_UNITS = {"Gb/sec": from_gigabits(1), "MB/sec": float(MIB), "MiB/sec": float(MIB), "usec": 1e-6, "B/sec": 1.0}


def _heading(line: str) -> Columns | None:
    """Name and unit of each column of a heading."""
    if not line.startswith("#bytes"):
        return None
    columns = tuple((cell["name"], cell["unit"] or "") for cell in _COLUMN.finditer(line))
    return columns if all(name[0] in "#Bt9M" for name, _ in columns) else None


def _guess(cells: tuple[str, ...]) -> Columns | None:
    """The columns of a row of rates without a heading: the messages per second give the unit."""
    if not _RATE_ROW.fullmatch(" ".join(cells)):
        return None
    moved, average = float(cells[0]) * float(cells[4]) * 1e6, float(cells[3])
    for unit in ("Gb/sec", "MiB/sec"):
        if moved and abs(average * _UNITS[unit] / moved - 1) < _ROUNDED:
            return tuple((name, unit) for name in _RATES)
    return None


def _lacks(what: str, **when: str) -> Case:
    why = f"no line before the perftest table names {what}"
    return Case(when=when, refused=why, what="Observation", reason=Reason.UNREADABLE)


_TEST = ("op", "both", "device", "memory")
_TOOL = Tool(
    lines=(
        Line(
            r"(?:RDMA_(?!Send)|(?=Send))(?P<op>Write|Read|Send)\b(?P<both> [A-Za-z_ ]{0,40}Bidirectional)?"
            r"[A-Za-z_ ]{0,40} Test",
            forgets=_TEST,
        ),
        Line(rf"(?=.*[ ](?:-b|--bidirectional)(?:[ ]|$)).*?{_COMMAND}.*", forgets=_TEST, sets={"both": "-b"}),
        Line(rf".*?{_COMMAND}.*", forgets=_TEST),
        Line(r".*\bPicking device No\. (?P<picked>[0-9]{1,3})\b.*"),
        Line(r".*\bDevice[ \t]*: (?P<device>[\w.-]{1,64})"),
    ),
    table=Table(
        _heading,
        _guess,
        values={"BW average": "rate", "t_typical": "rate"},
        once={"picked": "memory"},  # the GPU of the next test
        first="#bytes",
        fused=re.compile(r"\.[0-9]{2}(?=[0-9]{1,9}\.)"),  # rates and latencies have two decimal places
    ),
    # The flow goes from the NIC or the GPU to the wire; for reads, in the other direction. The port is 1 if not stated.
    cases=(
        _lacks("the device", device=""),
        _lacks("the command", op=""),
        *(
            Case(
                ends[::-1] if op == "Read" else ends,
                {"op": f"(?i:{op})", "memory": memory, "both": both, "unit": unit},
                op=op.lower(),
                both=rate,
                quantity=quantity,
            )
            for op in ("Write", "Read", "Send")
            for memory, ends in (("", ("{device}", "{device}/1")), (".+", ("{memory}", "{device}/1")))
            for unit, quantity in (("usec", "latency"), (".*", "rate"))
            for both, rate in (("", ""), (".+", "each" if quantity == "latency" else "sum"))
        ),
    ),
    units=_UNITS,
)


def read(part: Part) -> Iterator[Record]:
    """The average rate, or the typical latency, of each message size."""
    yield from each_document(part, _JSON, _document)
    gpus = {f"{number}": f"gpu{number}" for number in range(1000)}
    gpus |= {found["number"]: f"0000:{found['bus'].lower()}.0" for _, found in part.matches(_GPU)}
    yield from read_tool(part, replace(_TOOL, meanings={"memory": gpus}))


def _document(part: Part, run: Any, where: str) -> Iterator[Record]:
    """The rates of a JSON document: bytes moved per second."""
    titled = _NAMED.match(str(member(run, "test_info.test")).lower())
    device = member(run, "test_info.Device") or member(run, "test_info.device")
    if not (titled and isinstance(device, str) and re.fullmatch(r"[\w.-]{1,64}", device)):
        return
    test = {"op": titled["op"], "both": "-b" if "bidirectional" in titled[0] else "", "device": device}
    found = list[tuple[str, Values, Evidence]]()
    for one in objects(member(run, "results")) or [member(run, "results")]:
        size, rate = number(member(one, "MsgSize"), _LARGEST), number(member(one, "MsgRate"), _FASTEST)
        if size and rate and rate < _FASTEST / size:
            numbers = {"size": f"{size:.0f}", "rate": repr(size * rate * 1e6), "unit": "B/sec"}
            found.append(("", {**test, **numbers}, Evidence(where, f"MsgSize {size:.0f}, MsgRate {rate:g}")))
    yield from read_rows(part, _TOOL, found)
