"""Result files of SuperBench: https://github.com/microsoft/superbenchmark, superbench/runner/runner.py (summaries: one
object of metrics per node) and superbench/executor/executor.py (results.json: a list of benchmarks of one process).

Names and units of metrics: docs/user-tutorial/benchmarks/micro-benchmarks.md; older ones in the source files of the
benchmarks. The reader takes metrics of links of one node: mem-bw, gpu-copy-bw, nvbandwidth, ib-loopback, nccl-bw,
disk-benchmark. It skips times, FLOPS, metrics that need other nodes (ib-traffic, patterns), runs that only check copies
for correctness (4 KiB), and collectives whose settings are only in the configuration ("nccl-bw:gdr-only").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import MIB, from_gigabytes
from ..core.json_values import documents, list_of, object_of
from ..core.matrix import Cell, implied_gpus
from ..core.part import Part
from . import gpu_copy, nccl, nvbandwidth

# A metric name is "benchmark:note/run/metric:rank". Note, run and rank are optional.
BEGIN = (
    r"^[ \t]*(?:\[\s{0,20})?\{\s{0,20}(?:\"node\"[ ]?:[ ]?\"[^\"\n]{1,100}\",\s{0,20})?"
    r"\"(?:[a-z][\w-]{1,60}(?::[\w.-]{1,60})?/[^\"\s]{1,200}\"[ ]?:[ ]?(?:-?[0-9]|null|NaN)"
    r"|name\"[ ]?:[ ]?\"[\w:/.-]{1,100}\",\s{0,20}\"type\"[ ]?:[ ]?\"(?:micro|model|docker)\")"
)
_KEY = re.compile(
    r"(?P<name>[a-z][a-z-]{1,40})(?::(?P<note>[\w.-]{1,60}))?/(?:[0-9]{1,4}/)?(?P<metric>[\w.-]{1,120}?)"
    r"(?::(?P<end>[\w.-]{1,40}?))?(?::(?P<rank>[0-9]{1,4}))?"
)
_PLACE = re.compile(r"(?:^|/)rank([0-9]{1,4})/[^/]*$")
_HOST_COPY = re.compile(r"(h2d|d2h)(?:_mem)?_bw(?:_gpu)?", re.IGNORECASE)
_MATRIX = re.compile(r"(\w{4,80})_(?:cpu|gpu)([0-9]{1,3})_gpu([0-9]{1,3})_bw")
# Until 0.5: perftest's own number, and the index of the device among the active ones. Later: a documented unit.
_OLD_PORT = re.compile(r"IB_(write|read|send)_([0-9]{1,12})_Avg_([0-9]{1,3})")
_PORT = re.compile(r"ib_(write|read|send)_bw_([0-9]{1,12})")
_COLLECTIVE = re.compile(r"(?:NCCL_)?([a-z]{4,20})_([0-9]{1,15})_(algbw|busbw)")
_DISK = re.compile(r"([a-z][a-z0-9]{1,30})_((?:seq|rand)_[a-z_]{4,20})_(bs|read_iops|write_iops)")
_OPS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
}
_PLAIN = (None, "default", "nvlink")  # notes of single-node runs with NCCL's default settings
_BEGINS = re.compile(r"[{\[]")
_COPY_CHECK = "correctness"
_FASTEST = 1e15  # bytes per second


class _Node(Struct):
    """The metrics of one node. The numbers of one result are separate metrics."""

    part: Part
    name: str | None = None
    tables: dict[str, list[tuple[Cell, Evidence]]] = field(default_factory=lambda: defaultdict(list))  # nvbandwidth
    collectives: dict[str, dict[int, dict[str, tuple[float, Evidence]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    disks: dict[tuple[str, str], dict[str, tuple[float, Evidence]]] = field(default_factory=lambda: defaultdict(dict))


def read(part: Part) -> Iterator[Record]:
    """The rates of the first node in the file."""
    records = list(_read(part))
    yield from (*records, *implied_gpus(records))


def _read(part: Part) -> Iterator[Record]:
    node, others = _Node(part), set[str]()
    for document in documents(part, _BEGINS):
        if isinstance(document, NotChecked):
            yield document
            continue
        named = object_of(document.value).get("node")
        name = named if isinstance(named, str) else None
        node.name = node.name or name
        if name != node.name:
            others.add(f"{name}")
            continue
        for key, value in _metrics(document.value, part.file):
            yield from _metric(node, key, value, part.cite(document.line, f"{key}: {value:g}"))
    yield from _tables(node)
    yield from _collectives(node)
    yield from _disks(node)
    if others:
        count = len(others) + 1
        why = f"results of {count} nodes; only those of {node.name} are read (linkgauge evaluates one node at a time)"
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.OTHER_CONTEXT,
            detail=why,
            how="pass the lines of one node only",
        )


def _metrics(document: object, file: str) -> Iterator[tuple[str, float]]:
    """Metrics by full name.

    In results.json each metric has a list of runs, and the path of the file contains the rank.
    """
    place = _PLACE.search(file)
    flat = {**object_of(document)}
    for one in map(object_of, list_of(document) or [document]):
        name = one.get("name")
        for metric, runs in object_of(one.get("result")).items():
            for run, value in enumerate(list_of(runs) if isinstance(name, str) else ()):
                flat[f"{name}/{run}/{metric}:{place[1] if place else 0}"] = value
    for key, value in flat.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < _FASTEST:
            yield key, float(value)


def _metric(node: _Node, key: str, value: float, cite: Evidence) -> Iterator[Observation]:
    found = _KEY.fullmatch(key)
    reader = _READERS.get(found["name"]) if found else None
    if found and reader and found["note"] != _COPY_CHECK:
        yield from reader(node, found, value, cite)


def _host_copy(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    """Each process uses the GPU of its rank (superbench/config/default.yaml) and the processor nearest to it."""
    if found := _HOST_COPY.fullmatch(key["metric"]):
        gpu = f"gpu{int(_rank(key))}"
        ends = ("host", gpu) if found[1].lower() == "h2d" else (gpu, "host")
        yield node.part.rate(Flow("copy", ends), from_gigabytes(value), cite)


def _rank(key: re.Match[str]) -> str:
    """The rank. Names with a single suffix have the rank in that suffix. 0 if there is one process."""
    end = key["end"] or ""
    return key["rank"] or (end if end.isdecimal() else "0")


def _gpu_copy(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    if copied := gpu_copy.flow(key["metric"].removesuffix("_bw")):
        yield node.part.rate(copied, from_gigabytes(value / (1 + len(copied.beside))), cite)


def _cell(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    if found := _MATRIX.fullmatch(key["metric"]):
        node.tables[found[1]].append((Cell(int(found[2]), int(found[3]), value, len(node.tables[found[1]])), cite))
    yield from ()


def _port(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    """A port that sends to itself.

    If the device has no name, "IB3" is the fourth active device in SuperBench's list.
    """
    old, new = _OLD_PORT.fullmatch(key["metric"]), _PORT.fullmatch(key["metric"])
    end = old[3] if old else key["end"]
    if (found := old or new) and end:
        device = f"IB{int(end)}" if end.isdecimal() else end
        ends = (device, f"{device}/1")
        flow = Flow(found[1], ends[::-1] if found[1] == "read" else ends, int(found[2]))
        yield node.part.rate(flow, value * MIB if old else from_gigabytes(value), cite)


def _collective(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    found = _COLLECTIVE.fullmatch(key["metric"])
    if found and found[1] in _OPS and key["note"] in _PLAIN:
        node.collectives[_OPS[found[1]]][int(found[2])].setdefault(found[3], (value, cite))
    yield from ()


def _disk(node: _Node, key: re.Match[str], value: float, cite: Evidence) -> Iterator[Observation]:
    if found := _DISK.fullmatch(key["metric"]):
        node.disks[found[1], found[2]].setdefault(found[3], (value, cite))
    yield from ()


def _tables(node: _Node) -> Iterator[Observation]:
    for test, cells in node.tables.items():
        for flow, rate, cell in nvbandwidth.flows(test, "", [cell for cell, _ in cells]):
            yield node.part.rate(flow, rate, cells[cell.line][1])


def _collectives(node: _Node) -> Iterator[Observation]:
    for op, sizes in node.collectives.items():
        rows = [
            (size, pair["algbw"][0], *pair["busbw"])
            for size, pair in sizes.items()
            if pair.keys() >= {"algbw", "busbw"}
        ]
        yield from nccl.bandwidths(node.part, rows, op, 0)


def _disks(node: _Node) -> Iterator[Observation]:
    """Operations per second, one block each."""
    for (device, _), known in node.disks.items():
        size = known.get("bs", (0.0, None))[0]
        sides: Sequence[str] = [side for side in ("read", "write") if f"{side}_iops" in known and size]
        for side in sides:
            value, cite = known[f"{side}_iops"]
            ends = (device, "host") if side == "read" else ("host", device)
            flow = Flow(side, ends, int(size), beside=(ends[::-1],) if len(sides) > 1 else ())
            yield node.part.rate(flow, value * size, cite)


_READERS: Mapping[str, Callable[[_Node, re.Match[str], float, Evidence], Iterator[Observation]]] = {
    "mem-bw": _host_copy,
    "gpu-copy-bw": _gpu_copy,
    "nvbandwidth": _cell,
    "ib-loopback": _port,
    "rdma-loopback": _port,
    "nccl-bw": _collective,
    "rccl-bw": _collective,
    "disk-benchmark": _disk,
}
