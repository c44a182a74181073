"""Results of AMD's copy benchmarks: hipBusBandwidth, rocm_bandwidth_test, TransferBench (p2p).

hipBusBandwidth (https://github.com/ROCm/HIP, samples/1_Utils/hipBusBandwidth) does not name its GPU. The key is "gpu".
Its bidirectional rates are sums.

rocm_bandwidth_test (https://github.com/ROCm/rocm_bandwidth_test, rocm_bandwidth_test_report.cpp) numbers processors and
GPUs in one list: processors are NUMA nodes, devices with a PCI address are GPUs. A row sends to its columns.
Bidirectional rates are sums. In TransferBench (https://github.com/ROCm/TransferBench,
src/client/Presets/PeerToPeer.hpp) "[Local read / Remote write]" names the end that copies. A copy by a processor is not
the rate of a GPU's engine.

The diagonal is a copy inside a GPU and uses no link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ....models.facts.records import Flow, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import implied_gpus
from ..core.part import Part
from ..core.tables import Case, Line, Tool, read_tool
from . import rocm_matrices
from .larger_copies import drop_disturbed

_BUS_TEST = r"(?:(?:H2D|D2H|Bidir)_Bandwidth_(?:pinned|unpinned|registered)|p2p_(?:uni|bi)_gpu\d{1,3}_gpu\d{1,3})"
BEGIN = (
    r"^[ \t]*(?:Device:[^\n]{1,100} Mem=[0-9.]{1,9}GB #CUs=[0-9]{1,5} Freq=|Total no\. of  available gpu #[0-9]"
    rf"|test[ ]{{1,20}}atts[ ]{{1,20}}units[ ]{{1,20}}median|{_BUS_TEST}[ ]{{1,20}}\+?[0-9]"
    r"|RocmBandwidthTest Version: |(?:Unid|B[i]?d)irectional copy (?:peak|average) bandwidth GB/s[ \t]*$"
    r"|TransferBench v[0-9]|Bytes Per Direction [0-9]"
    r"|Unidirectional copy peak bandwidth GB/s \[(?:Local|Remote) read / (?:Local|Remote) write\])"
)
_NO_PEERS = re.compile(r"\s*peer2peer not supported :((?:\s+gpu#\d{1,3})+)\s*")
_PEER = re.compile(r"for gpu#(\d{1,3}) (\S.*)")
_BUS = Tool(
    lines=(Line(r"for gpu#(?P<gpu>\d{1,3}) (?P<name>\S.*)"),),
    rows=(
        r"(?:(?P<way>H2D|D2H|Bidir)_Bandwidth_(?P<memory>pinned|unpinned|registered)"
        r"|p2p_(?P<peers>uni|bi)_(?P<a>gpu\d{1,3})_(?P<b>gpu\d{1,3}))"
        r"\s+\+?(?P<size>\d{1,9})(?P<size_unit>By|kB)\s+GB/sec\s+(?P<rate>\d{1,6}\.\d{1,6})(?:\s+\S{1,20}){4}",
    ),
    cases=(
        Case(
            when={"memory": "unpinned"},
            refused="copies of unpinned memory go through a buffer of the driver",
            how="hipBusBandwidth without --unpinned",
            subject="host-gpu",
        ),
        Case(("{a}", "{b}"), {"peers": "uni"}),
        Case(("{a}", "{b}"), {"peers": "bi"}, both="sum"),
        Case(("host", "gpu"), {"way": "Bidir"}, both="sum"),
        Case(("gpu", "host"), {"way": "D2H"}),
        Case(("host", "gpu"), {"way": "H2D"}),
    ),
    units={"": from_gigabytes(1)},
)


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy."""
    staged = set(_without_access(part))
    records = [
        *drop_disturbed(_marked(one, staged) for one in read_tool(part, _BUS)),
        *rocm_matrices.read(part),
    ]
    yield from records
    yield from (gpu for gpu in implied_gpus(records) if gpu.key != "gpu")


def _marked(one: Record, staged: set[tuple[str, ...]]) -> Record:
    """The record; the driver copies through host memory between GPUs without peer access."""
    if isinstance(one, Observation) and isinstance(one.about, Flow):
        ends = one.about.ends
        if {ends, ends[::-1], *(("", end) for end in ends)} & staged:
            return replace(one, about=replace(one.about, via="host"))
    return one


def _without_access(part: Part) -> Iterator[tuple[str, ...]]:
    """Pairs without peer access according to hipBusBandwidth. The first end is empty if its line is missing."""
    gpu = ""
    for _, line in part.lines():
        if peer := _PEER.fullmatch(line.strip()):
            gpu = f"gpu{int(peer[1])}"
        elif missing := _NO_PEERS.fullmatch(line):
            yield from ((gpu, one.replace("#", "")) for one in missing[1].split())
