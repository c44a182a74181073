"""Results of p2pBandwidthLatencyTest, and the lines of deviceQuery and simpleP2P about peer access.

https://github.com/NVIDIA/cuda-samples

If peers write (the default), a row sends to its columns. If peers read, it receives from them. Without peer access the
driver copies through host memory. Bidirectional matrices contain sums. The reader skips the diagonal: a copy inside a
GPU counts bytes read and bytes written and uses no link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Gpu, GpuPair
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import with_gpus
from ..core.part import Part
from ..core.read_tool import read_tool, through_host
from ..core.tables import Case, Line, Tool

_SAID = r"(?:[^\n]{0,300}[.:!?)] )?"  # a sentence before the title of a matrix
BEGIN = (
    r"^[ \t]*(?:\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|P2P Connectivity Matrix"
    rf"|{_SAID}(?:Unid|Bid)irectional [Pp]2[Pp]=(?:Ena|Disa)bled [Bb]andwidth |[Pp]2[Pp]=(?:Ena|Disa)bled Latency "
    r"|Device: \d{1,4}, .{1,100}, pciBusID: |Device=\d{1,4} CAN(?:NOT)? Access Peer Device"
    r"|(?:> )?Peer access from .{1,100}\(GPU\d{1,3}\) ->"
    r"|(?:[|][ \t]*)?D\\D(?:[ \t|]+[0-9]{1,3}){2,64}[ \t|]*$)"
)
_OUT, _BACK = ("gpu{row}", "gpu{column}"), ("gpu{column}", "gpu{row}")
_TOOL = Tool(
    lines=(
        Line(
            r"Device: (?P<gpu>\d{1,4}), (?P<name>\S.*?), pciBusID: (?P<bus>[0-9a-f]{1,2}), "
            r"pciDeviceID: (?P<slot>[0-9a-f]{1,2}), pciDomainID: ?(?P<domain>[0-9a-f]{1,8})"
        ),
        Line(
            _SAID + r"(?P<flow>Unid|Bid)irectional [Pp]2[Pp]=(?P<peers>Ena|Disa)bled [Bb]andwidth "
            r"(?:\(P2P (?P<by>Writes|Reads)\) )?[Mm]atrix \(GB/s\)",  # busGrind writes "p2p"
            forgets=("by",),
            matrix=True,
            square=True,
        ),
    ),
    cases=(
        Case(ends=_BACK, when={"flow": "Bid", "by": "Reads"}, via="{peers}", both="sum"),
        Case(ends=_OUT, when={"flow": "Bid"}, via="{peers}", both="sum"),
        Case(ends=_BACK, when={"by": "Reads"}, via="{peers}"),
        Case(ends=_OUT, via="{peers}"),
    ),
    units={"": from_gigabytes(1)},
    meanings={"peers": {"Disa": "host", "Ena": ""}},
)
_COLUMNS = re.compile(r"[ \t|]*D\\D[ \t|]+[0-9]")
_CONNECTED = re.compile(r"\s*P2P Connectivity Matrix\s*")
_REFUSED = re.compile(r"\s*Device=(\d{1,4}) CANNOT Access Peer Device=(\d{1,4})\s*")
_ACCESS = re.compile(  # deviceQuery.cpp, simpleP2P.cu
    r"^[ \t]{0,20}(?:> )?Peer access from (?P<name>[^\n]{1,80}?) \(GPU(?P<gpu>\d{1,3})\) ->"
    r" (?P<peer>[^\n]{1,80}?) \(GPU(?P<to>\d{1,3})\) : (?P<able>Yes|No)[ \t]*$",
    re.MULTILINE,
)
_ROW = re.compile(r"\s*(\d{1,3})((?:\s+[01])+)\s*")


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy. Copies through host memory are marked."""
    turn = -1 if "(P2P Reads)" in part.text else 1  # the GPU that copies is the sender or the receiver
    staged = {pair[::turn] for pair in _without_access(part.text.split("\n"))}
    yield from with_gpus(through_host(read_tool(part, _TOOL), staged))
    yield from _untitled(part)
    yield from _access(part)


def _access(part: Part) -> Iterator[Gpu | GpuPair]:
    """The GPUs that deviceQuery names, and whether each pair has peer access. "Yes" includes NVLink."""
    gpus, pairs = dict[str, Gpu](), dict[str, GpuPair]()
    for number, found in part.matches(_ACCESS):
        where = part.cite(number, found[0].strip())
        ends = {f"gpu{int(found[end])}": found[name] for end, name in (("gpu", "name"), ("to", "peer"))}
        for key, name in ends.items():
            gpus.setdefault(key, Gpu(key=key, name=name, cites={"name": where}))
        key = "-".join(sorted(ends, key=lambda end: int(end[3:])))
        if pairs.get(key) is None or found["able"] == "No":
            status = "ok" if found["able"] == "Yes" else "not supported"
            pairs[key] = GpuPair(key=key, read=status, cites={"read": where})
    yield from gpus.values()
    yield from pairs.values()


def _untitled(part: Part) -> Iterator[NotChecked]:
    """A matrix without its title can be of rates or of latencies, in one direction or in both."""
    above = ""
    for number, line in part.lines():
        if _COLUMNS.match(line) and "atrix" not in above:
            why = "the line above the matrix is missing: it names the unit, the direction and peer access"
            yield part.gap(number, why, "rate of copy", Reason.UNREADABLE)
        above = line if any(map(str.isalnum, line)) else above


def _without_access(lines: list[str]) -> Iterator[tuple[str, ...]]:
    """Pairs without peer access according to the tool."""
    for number, line in enumerate(lines):
        if pair := _REFUSED.fullmatch(line):
            yield f"gpu{int(pair[1])}", f"gpu{int(pair[2])}"
        elif _CONNECTED.fullmatch(line):
            for place in range(number + 2, len(lines)):
                if not (row := _ROW.fullmatch(lines[place])):
                    break
                able = enumerate(row[2].split())
                yield from ((f"gpu{int(row[1])}", f"gpu{column}") for column, word in able if word == "0")
