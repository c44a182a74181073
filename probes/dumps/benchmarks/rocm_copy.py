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
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ....models.facts.gpu import Gpu
from ....models.facts.records import NotChecked, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import with_gpus
from ..core.part import Part
from ..core.read_tool import gpu_of, read_tool, through_host
from ..core.tables import Case, Line, Tool, named
from ..lines.markup import cells_of
from .rocm_access import access

_BUS_TEST = r"(?:(?:H2D|D2H|Bidir)_Bandwidth_(?:pinned|unpinned|registered)|p2p_(?:uni|bi)_gpu\d{1,3}_gpu\d{1,3})"
BEGIN = (
    r"^[ \t]*(?:Device:[^\n]{1,100} Mem=[0-9.]{1,9}GB #CUs=[0-9]{1,5} Freq=|Total no\. of  available gpu #[0-9]"
    rf"|test[ ]{{1,20}}atts[ ]{{1,20}}units[ ]{{1,20}}median|{_BUS_TEST}[ ]{{1,20}}\+?[0-9]"
    r"|RocmBandwidthTest Version: |Device: [0-9]{1,3},[ ]{1,8}\w[^\n]{2,120}$"
    r"|Inter-Device (?:Access|Numa Distance)[ \t]*$"
    r"|(?:Unid|B[i]?d)irectional (?:copy )?(?:peak|average) bandwidth GB/s[ \t]*$"
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
    growing=True,
)
_DEVICE = re.compile(
    r"Device: (?P<number>\d{1,3}),\s+(?P<name>\S.*?)"
    r"(?:,[ ]{1,8}(?:GPU-\w{1,40},[ ]{1,8})?(?P<bus>[0-9a-f]{1,2}):(?P<slot>[0-9a-f]{1,2})\.(?P<function>[0-7]))?"
)
_PROCESSOR = re.compile(
    r"\b(?:Processor|CPU|[0-9]{1,3}-Core|EPYC|Ryzen|Threadripper|Xeon|Celeron|Pentium|Athlon|APU)\b|\bCore\(TM\)",
    re.IGNORECASE,
)
_OTHER = Line(r".*bandwidth.*", forgets=("title",))  # the heading of another matrix
_ROCM = Tool(
    lines=(
        Line(r"(?P<title>Unid|Bi?d)irectional (?:copy )?(?:peak|average) bandwidth GB/s", forgets=("columns",)),
        Line(r"D/D(?P<columns>(?:\s+\d{1,3})+)"),
        _OTHER,
    ),
    rows=(r"(?P<device>\d{1,3})(?P<cells>(?:\s+(?:\d{1,6}\.\d{1,6}|N/A))+)",),
    label=r"(?P<device>\d{1,3})",
    cases=(),  # the lines of the devices give them
    units={"": from_gigabytes(1)},
    block="title",
)
_END = r"(?P<kind>CPU|GPU) (?P<number>\d{1,3})"
_BENCH_ENDS, _KINDS = ("{kind}{number}", "{to_kind}{to_number}"), {"CPU": "numa", "GPU": "gpu"}
_BENCH = Tool(
    lines=(
        Line(r"Bytes Per Direction (?P<size>\d{1,15})"),
        Line(
            r"Unidirectional copy peak bandwidth GB/s \[(?P<title>Local|Remote) read / (?:Local|Remote) write\] "
            r"\(GPU-Executor: (?P<engine>GFX|DMA)\)",
            forgets=("columns",),
        ),
        Line(r"(?:CPU|GPU) \d{1,3}\s+(?:min|max|sd)\b.*"),  # with SHOW_ITERATIONS
        Line(r"SRC(?:\+EXE)?\\{1,2}(?:EXE\+)?DST(?P<columns>(?:\s+(?:CPU|GPU) \d{1,3})+)"),
        _OTHER,
    ),
    rows=(rf"{_END}\s+->(?P<cells>(?:\s+(?:\d{{1,6}}\.\d{{2}}|N/A))+)",),
    label=_END,
    # The end that copies is a GPU.
    cases=(
        Case(_BENCH_ENDS, {"title": "Local", "kind": "GPU"}, op="{engine}"),
        Case(_BENCH_ENDS, {"title": "Remote", "to_kind": "GPU"}, op="{engine}"),
    ),
    units={"": from_gigabytes(1)},
    meanings={"engine": {"GFX": "copy-sm", "DMA": "copy"}, "kind": _KINDS, "to_kind": _KINDS},
    block="title",
)


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy."""
    yield from with_gpus(_read(part))


def _read(part: Part) -> Iterator[Record]:
    yield from through_host(read_tool(part, _BUS), set(_without_access(part)))
    ends = dict[str, str]()
    yield from _devices(part, ends)
    yield from access(part, ends)
    yield from read_tool(part, replace(_ROCM, meanings={"device": ends, "to_device": ends}, cases=_rocm_cases(ends)))
    yield from read_tool(part, _BENCH)


def _rocm_cases(ends: Mapping[str, str]) -> tuple[Case, ...]:
    """One end at least is a GPU, and both are known."""
    known, gpus = "|".join(ends), "|".join(number for number, end in ends.items() if end.startswith("gpu"))
    return tuple(
        Case(("{device}", "{to_device}"), {"device": one, "to_device": two, "title": title}, both=both)
        for title, both in (("Unid", ""), ("Bi?d", "sum"))
        for one, two in ((gpus, known), (known, gpus))
    )


def _devices(part: Part, ends: dict[str, str]) -> Iterator[Gpu | NotChecked]:
    """The GPUs of rocm_bandwidth_test, and in `ends` the key of each device by its number."""
    gpus, lines = 0, [(number, line, _DEVICE.fullmatch(cells_of(line).strip())) for number, line in part.lines()]
    addressed = any(device and device["bus"] for _, _, device in lines)  # the first versions print no address
    for number, line, device in lines:
        if "RocmBandwidthTest" in line:
            ends.clear()
            gpus = 0
        elif device and int(device["number"]) == len(ends) and (_is_gpu(device, addressed) or _PROCESSOR.search(line)):
            is_gpu = _is_gpu(device, addressed)
            ends[device["number"]] = f"gpu{gpus}" if is_gpu else f"numa{int(device['number'])}"
            if is_gpu:
                yield gpu_of({**named(device), "gpu": f"{gpus}"}, part.cite(number, line))
                gpus += 1
        elif device and 0 <= int(device["number"]) - len(ends) <= 1:  # the line of a device, or its end, is missing
            why = f"the line of device {len(ends)} is missing, so the devices after it have no number"
            yield part.gap(number, why, "Gpu")


def _is_gpu(device: re.Match[str], addressed: bool) -> bool:
    """Whether the device is a GPU. `addressed`: the output prints the addresses of GPUs."""
    return bool(device["bus"]) if addressed else not _PROCESSOR.search(device["name"])


def _without_access(part: Part) -> Iterator[tuple[str, str]]:
    """Pairs without peer access according to hipBusBandwidth. The first end is empty if its line is missing."""
    gpu = ""
    for _, line in part.lines():
        if peer := _PEER.fullmatch(line.strip()):
            gpu = f"gpu{int(peer[1])}"
        elif missing := _NO_PEERS.fullmatch(line):
            for other in missing[1].replace("#", "").split():
                yield from ((gpu, other), (other, gpu)) if gpu else ((gpu, other),)
