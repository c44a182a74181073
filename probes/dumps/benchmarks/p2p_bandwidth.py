"""Results of p2pBandwidthLatencyTest: https://github.com/NVIDIA/cuda-samples, p2pBandwidthLatencyTest.cu.

If peers write (the default), a row sends to its columns. If peers read, it receives from them. Without peer access the
driver copies through host memory. Bidirectional matrices contain sums. The reader skips the diagonal: a copy inside a
GPU counts bytes read and bytes written and uses no link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Gpu
from ....models.facts.records import Flow, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import Cell, cells, implied_gpus, truncation
from ..core.part import Part

BEGIN = (
    r"^[ \t]*(?:\[P2P \(Peer-to-Peer\) GPU Bandwidth Latency Test\]|P2P Connectivity Matrix"
    r"|(?:Unid|Bid)irectional P2P=(?:Ena|Disa)bled Bandwidth |P2P=(?:Ena|Disa)bled Latency "
    r"|Device: \d{1,4}, .{1,100}, pciBusID: |Device=\d{1,4} CAN(?:NOT)? Access Peer Device)"
)
_GPU = re.compile(
    r"\s*Device: (\d{1,4}), (\S.*?), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), "
    r"pciDomainID: ?([0-9a-f]{1,8})\s*"
)
_HEADING = re.compile(
    r"\s*(Unid|Bid)irectional P2P=(Ena|Disa)bled Bandwidth (?:\(P2P (Writes|Reads)\) )?Matrix \(GB/s\)\s*"
)
_CONNECTED = re.compile(r"\s*P2P Connectivity Matrix\s*")
_REFUSED = re.compile(r"\s*Device=(\d{1,4}) CANNOT Access Peer Device=(\d{1,4})\s*")
_ROW = re.compile(r"\s*(\d{1,3})((?:\s+[01])+)\s*")


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy. Copies through host memory are marked."""
    records = list(_records(part))
    yield from (*records, *implied_gpus(records))


def _records(part: Part) -> Iterator[Record]:
    lines = part.text.split("\n")
    staged = set(_without_access(lines))
    for number, line in enumerate(lines):
        if gpu := _GPU.fullmatch(line):
            cite = part.cite(number, line)
            address = f"{int(gpu[5], 16):04x}:{int(gpu[3], 16):02x}:{int(gpu[4], 16):02x}.0"
            yield Gpu(key=f"gpu{int(gpu[1])}", name=gpu[2], address=address, cites={"name": cite, "address": cite})
        elif heading := _HEADING.fullmatch(line):
            both, disabled, reads = heading[1] == "Bid", heading[2] == "Disa", heading[3] == "Reads"
            for cell in cells(lines, number + 1):
                if cell.row != cell.column:
                    through_host = disabled or (cell.row, cell.column) in staged
                    yield _rate(part, cell, lines[cell.line], both, through_host, reads)
            if end := truncation(lines, number + 1, square=True):
                yield part.cut(*end)


def _without_access(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Pairs without peer access according to the tool."""
    for number, line in enumerate(lines):
        if pair := _REFUSED.fullmatch(line):
            yield int(pair[1]), int(pair[2])
        elif _CONNECTED.fullmatch(line):
            for place in range(number + 2, len(lines)):
                if not (row := _ROW.fullmatch(lines[place])):
                    break
                yield from ((int(row[1]), column) for column, able in enumerate(row[2].split()) if able == "0")


def _rate(part: Part, cell: Cell, line: str, both: bool, through_host: bool, reads: bool) -> Observation:
    ends = (f"gpu{cell.row}", f"gpu{cell.column}")
    ends = ends[::-1] if reads else ends
    flow = Flow("copy", ends, via="host" if through_host else "", beside=(ends[::-1],) if both else ())
    return part.rate(flow, from_gigabytes(cell.value / 2 if both else cell.value), part.cite(cell.line, line))
