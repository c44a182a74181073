"""Benchmarks that print one number in each line: the OSU tests of MPI, qperf, dd, hdparm.

https://mvapich.cse.ohio-state.edu/benchmarks (osu_bw.c, osu_bibw.c, osu_mbw_mr.c; 1 MB is 10^6 bytes);
https://github.com/linux-rdma/qperf (qperf.c, view_band: steps of 1000); coreutils, dd.c (print_xfer_stats); hdparm.c.

The ranks of an OSU test can be on one node or on two, and its output does not say where. Its command says where the
buffers are: "D H" is a GPU's memory and the host's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from ....models.facts.records import Record
from ....models.facts.units import from_megabytes, prefixed
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Line, Tool

_OSU, _TESTS = r"# OSU (?:MPI|NCCL|UPC|OpenSHMEM)\S{0,12}", r"(?:tcp|udp|sdp|sctp|rds|rc|uc|ud|xrc)_\w{2,30}"
_RATE_UNIT = "[KMGT][bB]|bytes|bits"  # qperf.c, view_band
_COMMAND = r"[^\n]{0,300}?(?<![\w.-])osu_\w{2,20}[ ][^\n]{1,200}"
BEGIN = (
    rf"^(?:{_COMMAND}(?=\n(?:[^\n]{{0,300}}\n){{0,5}}[ \t]*{_OSU} [A-Z])"
    rf"|[ \t]*(?:{_OSU} [A-Z]|{_TESTS}:[ \t]*\n[ \t]*(?:bw|latency|send_bw|recv_bw|msg_rate)[ \t]{{1,9}}=[ ]"
    r"|(?:[\w@:~$#%./-]{1,60}[ ]){0,3}dd (?:\w{2,6}=\S{1,200}[ ]){0,9}[io]f=/dev/\S|[0-9]{1,9}\+[0-9] records in[ \t]*$"
    r"|[0-9]{4,18} bytes (?:\([^\n)]{4,30}\) )?copied, [0-9.e-]{1,12} s(?:econds)?, [0-9]"
    r"|/dev/\w{2,20}:[ \t]*\n[ \t]*(?:HDIO_|Timing )"
    r"|Timing (?:O_DIRECT|buffered|cached|O_DIRECT cached) (?:disk )?reads: ))"
)
_DISK, _FIO = "rate of a disk", "fio with direct=1, ioengine=libaio, iodepth=32 and bs=1M"
_DEPTH = "with one request at a time the program does not reach the rate of a disk"
# The last column with -c: what arrived is not what was sent (osu_util_validation.c)
_WRONG = re.compile(r"[ \t|]*(\d{1,12})(?:[ \t|]+\d{1,12}(?:\.\d{1,4})?){1,6}[ \t|]+Fail(?:ed)?[ \t|]*$", re.IGNORECASE)
_MPI, _NET = "rate of MPI", "rate of the network"
_PLACES = {"D": "", "H": ":host", "M": ":managed"}
_BETWEEN_RANKS = tuple(
    Case(
        (f"rank0{_PLACES[one]}", f"rank1{_PLACES[two]}"), {"test": test, "source": one, "sink": two}, "send", both=both
    )
    for test, both in (("one", ""), ("both", "sum"))
    for one, two in product(_PLACES, repeat=2)
)
_TOOL = Tool(
    lines=(
        Line(r".*\bosu_\w+ (?:.* )?(?P<source>[DHM]) (?P<sink>[DHM])(?: .*)?"),
        Line(r"# Send Buffer on \w{4,8} \((?P<source>[DHM])\) and Receive Buffer on \w{4,8} \((?P<sink>[DHM])\)"),
        Line(rf"{_OSU} Bandwidth Test.*", sets={"test": "one"}),
        Line(rf"{_OSU} Bi-?Directional Bandwidth Test.*", sets={"test": "both"}),
        Line(rf"{_OSU} Multiple Bandwidth.*", sets={"test": "sum"}),
        Line(rf"{_OSU} .*", sets={"test": "time"}),
        Line(rf"(?P<test>{_TESTS}):", ("*",)),
        Line(r"/dev/\w{2,20}:", ("*",)),
    ),
    rows=(
        r"(?P<size>\d{1,12})\s+(?P<rate>\d{1,9}\.\d{2})(?:\s+\d{1,12}\.\d{1,2})?(?:\s+(?:Pass|Fail))?",
        rf"(?P<name>bw|recv_bw|send_bw)\s+=\s+(?P<rate>\d{{1,6}}(?:\.\d{{1,3}})?) (?P<unit>{_RATE_UNIT})/sec",
        r"(?P<size>\d{4,18}) bytes (?:\(.{4,30}\) )?copied, \S{1,12} s(?:econds)?, "
        r"(?P<rate>\d{1,6}(?:\.\d{1,3})?) (?P<unit>[kMGT]?B)/s(?P<test>)",
        r"Timing (?P<test>O_DIRECT disk|buffered disk|O_DIRECT cached|cached) reads:\s+\d{1,9} MB in\s+[\d.]{1,9} "
        r"seconds\s+=\s+(?P<rate>\d{1,9}\.\d{1,2}) (?P<unit>[kM]B)/sec",
    ),
    cases=(
        *_BETWEEN_RANKS,
        Case(("rank0", "rank1"), {"test": "one"}, "send"),
        Case(("rank0", "rank1"), {"test": "both"}, "send", both="sum"),
        Case(when={"test": "sum"}, refused="the sum over pairs of ranks", how="osu_bw", what=_MPI),
        Case(when={"test": "time"}, refused="the test prints times, and no rates", how="osu_bw", what=_MPI),
        Case(when={"test": ".*cached"}),  # the rate of the page cache
        Case(when={"test": "|.* disk"}, refused=_DEPTH, how=_FIO, what=_DISK),
        Case(when={"name": "send_bw"}),  # recv_bw has what arrived
        Case(("host", "network"), {"test": "(?:tcp|sctp)_bw"}, "tcp"),
        Case(("host", "network"), {"test": "udp_bw"}, "udp"),
        Case(when={"test": "(?:rc|uc|ud|xrc)_.*"}, refused="qperf names no adapter", how="ib_write_bw", what=_NET),
    ),
    units={"": from_megabytes(1), "bytes": 1.0, "bits": 1 / 8, **prefixed("B"), **prefixed("b", 1 / 8)},
    block="source",
    needs=("test",),
    lacks="the first lines of the test are missing: they name what the number is",
)


def read(part: Part) -> Iterator[Record]:
    """The rates of MPI and TCP, and failed validations; the rates of disks are gaps."""
    yield from read_tool(part, _TOOL)
    wrong = [(number, line, found[1]) for number, line in part.lines() if (found := _WRONG.match(line))]
    if wrong:
        number, line, size = wrong[0]
        text = f"validation of MPI data: Fail at {size} bytes, rows with Fail: {len(wrong)}"
        yield part.event(number, line, "osu-wrong-data", "node", text)
