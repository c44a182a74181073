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
from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Observation, Record
from ....models.facts.units import KIB, from_gigabytes
from ..core.matrix import implied_gpus
from ..core.part import Part
from ..core.sizes import drop_disturbed

_BUS_TEST = r"(?:(?:H2D|D2H|Bidir)_Bandwidth_(?:pinned|unpinned|registered)|p2p_(?:uni|bi)_gpu\d{1,3}_gpu\d{1,3})"
BEGIN = (
    r"^[ \t]*(?:Device:[^\n]{1,100} Mem=[0-9.]{1,9}GB #CUs=[0-9]{1,5} Freq=|Total no\. of  available gpu #[0-9]"
    rf"|test[ ]{{1,20}}atts[ ]{{1,20}}units[ ]{{1,20}}median|{_BUS_TEST}[ ]{{1,20}}\+?[0-9]"
    r"|RocmBandwidthTest Version: |(?:Unid|B[i]?d)irectional copy (?:peak|average) bandwidth GB/s[ \t]*$"
    r"|TransferBench v[0-9]|Bytes Per Direction [0-9]"
    r"|Unidirectional copy peak bandwidth GB/s \[(?:Local|Remote) read / (?:Local|Remote) write\])"
)
_BUS_ROW = re.compile(
    r"\s*(?:(?P<way>H2D|D2H|Bidir)_Bandwidth_(?P<memory>pinned|unpinned|registered)"
    r"|p2p_(?P<peers>uni|bi)_(?P<a>gpu\d{1,3})_(?P<b>gpu\d{1,3}))"
    r"\s+(?P<size>\+?\d{1,9})(?P<unit>By|kB)\s+GB/sec\s+(?P<rate>\d{1,6}\.\d{1,6})(?:\s+\S{1,20}){4}\s*"
)
_PEER = re.compile(r"for gpu#(\d{1,3}) (\S.*)")
_NO_PEERS = re.compile(r"\s*peer2peer not supported :((?:\s+gpu#\d{1,3})+)\s*")
_DEVICE = re.compile(
    r"Device: (?P<number>\d{1,3}),\s+(?P<name>\S.*?)"
    r"(?:,[ ]{1,8}(?:GPU-\w{1,40},[ ]{1,8})?(?P<bus>[0-9a-f]{1,2}):(?P<slot>[0-9a-f]{1,2})\.(?P<function>[0-7]))?"
)
_ROCM = re.compile(r"\s*(?P<both>Unid|Bi?d)irectional copy (?:peak|average) bandwidth GB/s\s*")
_ROCM_COLUMNS = re.compile(r"\s*D/D((?:\s+\d{1,3})+)\s*")
_ROCM_ROW = re.compile(r"\s*(\d{1,3})((?:\s+(?:\d{1,6}\.\d{1,6}|N/A))+)\s*")
_SIZE = re.compile(r"\s*Bytes Per Direction (\d{1,15})\s*")
_BENCH = re.compile(
    r"\s*Unidirectional copy peak bandwidth GB/s \[(?P<side>Local|Remote) read / (?:Local|Remote) write\] "
    r"\(GPU-Executor: (?P<engine>GFX|DMA)\)\s*"
)
_BENCH_COLUMNS = re.compile(r"\s*SRC(?:\+EXE)?\\{1,2}(?:EXE\+)?DST((?:\s+(?:CPU|GPU) \d{1,3})+)\s*")
_BENCH_ROW = re.compile(r"\s*((?:CPU|GPU) \d{1,3})\s+->((?:\s+(?:\d{1,6}\.\d{2}|N/A))+)\s*")
_BENCH_MORE = re.compile(r"\s*(?:CPU|GPU) \d{1,3}\s+(?:min|max|sd)\s.*")  # with SHOW_ITERATIONS
_BENCH_END = re.compile(r"(CPU|GPU) (\d{1,3})")
_OPS = {"GFX": "copy-sm", "DMA": "copy"}


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy."""
    lines = part.text.split("\n")
    records: list[Record] = [
        *drop_disturbed(_read_bus_bandwidth(part, lines)),
        *_read_rocm_bandwidth(part, lines),
        *_read_transfer_bench(part, lines),
    ]
    yield from records
    yield from (gpu for gpu in implied_gpus(records) if gpu.key != "gpu")


def _read_bus_bandwidth(part: Part, lines: Sequence[str]) -> Iterator[Record]:
    gpu, staged, refused = "", set[tuple[str, str]](), False
    for number, line in enumerate(lines):
        if peer := _PEER.fullmatch(line.strip()):
            gpu = f"gpu{int(peer[1])}"
            yield Gpu(key=gpu, name=peer[2], cites={"name": part.cite(number, line)})
        elif missing := _NO_PEERS.fullmatch(line):
            staged |= {(gpu, one.replace("#", "")) for one in missing[1].split()}
        elif not (row := _BUS_ROW.fullmatch(line)):
            continue
        elif row["memory"] != "unpinned":
            yield from _bus_rate(part, number, line, row, staged)
        elif not refused:
            refused = True
            why = "copies of unpinned memory go through a buffer of the driver"
            yield NotChecked(
                what="rate of copy",
                subject="host-gpu",
                reason=Reason.NOT_MEASURED,
                path=part.where(number),
                detail=why,
                how="hipBusBandwidth without --unpinned",
            )


def _bus_rate(
    part: Part, number: int, line: str, row: re.Match[str], staged: set[tuple[str, str]]
) -> Iterator[Observation]:
    """Half of a bidirectional sum."""
    ends = ("gpu", "host") if row["way"] == "D2H" else ("host", "gpu")
    if row["peers"]:
        ends = (row["a"], row["b"])
    both = "bi" in (row["peers"], (row["way"] or "").lower()[:2])
    size = int(row["size"]) * (KIB if row["unit"] == "kB" else 1)
    rate = from_gigabytes(float(row["rate"]) / (2 if both else 1))
    if rate and size:
        via = "host" if {ends, ends[::-1]} & staged else ""
        flow = Flow("copy", ends, size, via, beside=(ends[::-1],) if both else ())
        yield part.rate(flow, rate, part.cite(number, line))


def _read_rocm_bandwidth(part: Part, lines: Sequence[str]) -> Iterator[Record]:
    ends, both, columns = dict[int, str](), None, list[int]()
    gpus = 0
    for number, line in enumerate(lines):
        if "RocmBandwidthTest" in line:
            ends, gpus = {}, 0
        elif device := _DEVICE.fullmatch(line.strip()):
            ends[int(device["number"])] = f"gpu{gpus}" if device["bus"] else f"numa{int(device['number'])}"
            if device["bus"]:
                address = f"0000:{int(device['bus'], 16):02x}:{int(device['slot'], 16):02x}.{device['function']}"
                cite = part.cite(number, line)
                yield Gpu(key=f"gpu{gpus}", name=device["name"], address=address, cites={"name": cite, "address": cite})
                gpus += 1
        elif heading := _ROCM.fullmatch(line):
            both, columns = heading["both"] != "Unid", []
        elif heads := _ROCM_COLUMNS.fullmatch(line):
            columns = [int(one) for one in heads[1].split()]
        elif both is not None and columns and (row := _ROCM_ROW.fullmatch(line)):
            yield from _rocm_rates(part, number, line, _cells(row, columns, ends), both)
        elif line.strip():
            both = None


def _cells(row: re.Match[str], columns: Sequence[int], ends: Mapping[int, str]) -> Iterator[tuple[str, str, float]]:
    """Sender, receiver and number of each cell with known ends. At least one end is a GPU."""
    sender = ends.get(int(row[1]))
    for column, text in zip(columns, row[2].split(), strict=False):
        receiver = ends.get(column)
        if sender and receiver and sender != receiver and text != "N/A" and "gpu" in sender + receiver:
            yield sender, receiver, float(text)


def _rocm_rates(
    part: Part, number: int, line: str, cells: Iterator[tuple[str, str, float]], both: bool
) -> Iterator[Observation]:
    for sender, receiver, value in cells:
        flow = Flow("copy", (sender, receiver), beside=((receiver, sender),) if both else ())
        if value:
            yield part.rate(flow, from_gigabytes(value / 2 if both else value), part.cite(number, line))


def _read_transfer_bench(part: Part, lines: Sequence[str]) -> Iterator[Observation]:
    size, heading, columns = None, None, list[str]()
    for number, line in enumerate(lines):
        if sized := _SIZE.fullmatch(line):
            size = int(sized[1]) or None
        elif begun := _BENCH.fullmatch(line):
            heading, columns = begun, []
        elif heads := _BENCH_COLUMNS.fullmatch(line):
            columns = [_end(one) for one in _BENCH_END.finditer(heads[1])]
        elif heading and (row := _BENCH_ROW.fullmatch(line)):
            sender = "".join(map(_end, _BENCH_END.finditer(row[1])))
            for receiver, text in zip(columns, row[2].split(), strict=False):
                copier = sender if heading["side"] == "Local" else receiver
                if text != "N/A" and float(text) and copier.startswith("gpu") and sender != receiver:
                    flow = Flow(_OPS[heading["engine"]], (sender, receiver), size)
                    yield part.rate(flow, from_gigabytes(float(text)), part.cite(number, line))
        elif line.strip() and not _BENCH_MORE.fullmatch(line):
            heading = None


def _end(found: re.Match[str]) -> str:
    return f"{'numa' if found[1] == 'CPU' else 'gpu'}{int(found[2])}"
