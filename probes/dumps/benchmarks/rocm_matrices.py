"""Matrices of AMD's copy benchmarks: rocm_bandwidth_test, TransferBench (p2p). rocm_copy.py has their sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.part import Part
from ..lines.markup import cells_of

_DEVICE = re.compile(
    r"Device: (?P<number>\d{1,3}),\s+(?P<name>\S.*?)"
    r"(?:,[ ]{1,8}(?:GPU-\w{1,40},[ ]{1,8})?(?P<bus>[0-9a-f]{1,2}):(?P<slot>[0-9a-f]{1,2})\.(?P<function>[0-7]))?"
)
_ROCM = re.compile(r"\s*(?P<both>Unid|Bi?d)irectional copy (?:peak|average) bandwidth GB/s\s*")
_PROCESSOR = re.compile(r"\b(?:Processor|CPU|[0-9]{1,3}-Core|EPYC|Ryzen|Threadripper|Xeon)\b", re.IGNORECASE)
_ROCM_COLUMNS = re.compile(r"\s*D/D((?:\s+\d{1,3})+)\s*")
_ROCM_ROW = re.compile(r"\s*(\d{1,3})((?:\s+(?:\d{1,6}\.\d{1,6}|N/A))+)\s*")
_SIZE = re.compile(r"\s*Bytes Per Direction (\d{1,15})\s*")
_BENCH = re.compile(
    r"\s*Unidirectional copy peak bandwidth GB/s \[(?P<side>Local|Remote) read / (?:Local|Remote) write\] "
    r"\(GPU-Executor: (?P<engine>GFX|DMA)\)\s*"
)
_BENCH_COLUMNS = re.compile(r"\s*SRC(?:\+EXE)?\\{1,2}(?:EXE\+)?DST((?:\s+(?:CPU|GPU) \d{1,3})+)\s*")
_BENCH_ROW = re.compile(r"\s*((?:CPU|GPU) \d{1,3})\s+->((?:\s+(?:\d{1,6}\.\d{2}|N/A))+)\s*")
_BENCH_NAME = re.compile(r"\s*(?:CPU|GPU) (?=\d{1,3}\s+->)")
_BENCH_MORE = re.compile(r"\s*(?:CPU|GPU) \d{1,3}\s+(?:min|max|sd)\s.*")  # with SHOW_ITERATIONS
_BENCH_END = re.compile(r"(CPU|GPU) (\d{1,3})")
_OPS = {"GFX": "copy-sm", "DMA": "copy"}


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy between processors and GPUs."""
    lines = [cells_of(line) for line in part.text.split("\n")]
    yield from _read_rocm_bandwidth(part, lines)
    yield from _read_transfer_bench(part, lines)


def _read_rocm_bandwidth(part: Part, lines: Sequence[str]) -> Iterator[Record]:
    ends, both, columns = dict[int, str](), None, list[int]()
    gpus = 0
    for number, line in enumerate(lines):
        if "RocmBandwidthTest" in line:
            ends, gpus = {}, 0
        elif device := _DEVICE.fullmatch(line.strip()):
            if int(device["number"]) != len(ends):  # the line of a device is missing, which can be a GPU
                if int(device["number"]) == len(ends) + 1:
                    yield _missing(part, number, len(ends))
                continue
            if not device["bus"] and not _PROCESSOR.search(line):  # the end of the line is missing
                yield _missing(part, number, len(ends))
                continue
            ends[int(device["number"])] = f"gpu{gpus}" if device["bus"] else f"numa{int(device['number'])}"
            if device["bus"]:
                address = f"0000:{int(device['bus'], 16):02x}:{int(device['slot'], 16):02x}.{device['function']}"
                cite = part.cite(number, line)
                yield Gpu(key=f"gpu{gpus}", name=device["name"], address=address, cites={"name": cite, "address": cite})
                gpus += 1
        elif heading := _ROCM.fullmatch(line):
            both, columns = heading["both"] != "Unid", []
        elif heads := _ROCM_COLUMNS.fullmatch(line):
            if columns:  # of another matrix, whose heading is missing
                both = None
            columns = [int(one) for one in heads[1].split()]
        elif both is not None and columns and (row := _ROCM_ROW.fullmatch(line)):
            if len(row[2].split()) != len(columns):  # a cell is missing, of the row or of the heading
                yield _unread(part, number, line)
                continue
            yield from _rocm_rates(part, number, line, _cells(row, columns, ends), both)
        elif both is not None and columns and _is_row(line, len(columns)):
            yield _unread(part, number, line)
        elif "bandwidth" in line:  # the heading of another matrix
            both = None


def _is_row(line: str, columns: int) -> bool:
    """Whether a line has a number and a cell for each column, so that it is a row with a cell in another form."""
    words = line.replace("->", " ").split()
    return len(words) == columns + 1 and words[0].isdecimal()


def _unread(part: Part, number: int, line: str) -> NotChecked:
    return NotChecked(
        what="rate of copy",
        subject="node",
        reason=Reason.INCOMPLETE,
        path=part.where(number),
        detail=f"{line.strip()[:60]!a} has a number in a form that the tool does not print",
        how="keep the whole output of the tool",
    )


def _missing(part: Part, number: int, device: int) -> NotChecked:
    why = f"the line of device {device} is missing, so the devices after it have no number"
    how = "keep the whole output of the tool"
    return NotChecked(
        what="Gpu", subject="node", reason=Reason.INCOMPLETE, path=part.where(number), detail=why, how=how
    )


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


def _read_transfer_bench(part: Part, lines: Sequence[str]) -> Iterator[Record]:
    size, heading, columns = None, None, list[str]()
    for number, line in enumerate(lines):
        if sized := _SIZE.fullmatch(line):
            size = _size(sized[1])
        elif begun := _BENCH.fullmatch(line):
            heading, columns = begun, []
        elif heads := _BENCH_COLUMNS.fullmatch(line):
            if columns:  # of another matrix, whose heading is missing
                heading = None
            columns = [_end(one) for one in _BENCH_END.finditer(heads[1])]
        elif heading and (row := _BENCH_ROW.fullmatch(line)):
            if len(row[2].split()) != len(columns):
                yield _unread(part, number, line)
                continue
            sender = "".join(map(_end, _BENCH_END.finditer(row[1])))
            for receiver, text in zip(columns, row[2].split(), strict=False):
                copier = sender if heading["side"] == "Local" else receiver
                if text != "N/A" and float(text) and copier.startswith("gpu") and sender != receiver:
                    flow = Flow(_OPS[heading["engine"]], (sender, receiver), size)
                    yield part.rate(flow, from_gigabytes(float(text)), part.cite(number, line))
        elif (
            heading
            and columns
            and "->" in line
            and _is_row(line.strip().removeprefix("CPU").removeprefix("GPU"), len(columns))
        ):
            yield _unread(part, number, line)
        elif "bandwidth" in line and not _BENCH_MORE.fullmatch(line):  # the heading of another matrix
            heading = None


def _size(text: str) -> int | None:
    """The bytes of a copy. The tool copies floats, and nobody measures with fewer than 1000 bytes or an odd number of
    them: such a number is cut.
    """
    size = int(text)
    return size if size and not (size % 1000 and size % 1024) else None


def _end(found: re.Match[str]) -> str:
    return f"{'numa' if found[1] == 'CPU' else 'gpu'}{int(found[2])}"
