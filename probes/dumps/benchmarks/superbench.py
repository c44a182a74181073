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
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import MIB, from_gigabytes
from ..core.json_values import documents, list_of, object_of
from ..core.matrix import Cell, with_gpus
from ..core.part import Part, transfer
from ..core.read_tool import read_rows
from ..core.tables import Case, Tool
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
_MATRIX = re.compile(r"(\w{4,80})_(?:cpu|gpu)([0-9]{1,3})_gpu([0-9]{1,3})_bw")
_COLLECTIVE = re.compile(r"(?:NCCL_)?([a-z]{4,20})_([0-9]{1,15})_(algbw|busbw)")
_DISK = re.compile(r"([a-z][a-z0-9]{1,30})_((?:seq|rand)_[a-z_]{4,20})_(bs|read_iops|write_iops)")
_PLAIN = (None, "default", "nvlink")  # notes of single-node runs with NCCL's default settings
_BEGINS = re.compile(r"[{\[]")
_FASTEST = 1e15  # bytes per second


def _port(device: str, end: str) -> tuple[Case, Case]:
    """A port that sends to itself."""
    return (
        Case((f"{device}/1", device), {"op": "read", "end": end}, op="read"),
        Case((device, f"{device}/1"), {"op": ".+", "end": end}, op="{op}"),
    )


_RATE, _LOOPBACK = r" (?P<rate>\S{1,30})", "(?:ib|rdma)-loopback"
_TOOL = Tool(
    lines=(),
    rows=(
        rf"mem-bw (?i:(?P<way>h2d|d2h)(?:_mem)?_bw(?:_gpu)?){_RATE}",
        rf"gpu-copy-bw {gpu_copy.COPY}(?:_bw)?{_RATE}",
        # Until 0.5: perftest's own number, and the index of the device among the active ones. Later: a documented unit.
        rf"{_LOOPBACK} IB_(?P<op>write|read|send)_(?P<size>[0-9]{{1,12}})_Avg_(?P<end>[0-9]{{1,3}}){_RATE}(?P<unit>)",
        rf"{_LOOPBACK} ib_(?P<op>write|read|send)_bw_(?P<size>[0-9]{{1,12}}){_RATE}",
    ),
    cases=(
        # Each process uses the GPU of its rank (superbench/config/default.yaml) and the processor nearest to it.
        Case(("host", "gpu{rank}"), {"way": "(?i:h2d)"}),
        Case(("gpu{rank}", "host"), {"way": "(?i:d2h)"}),
        *gpu_copy.COPIES,
        # If the device has no name, "IB3" is the fourth active device in SuperBench's list.
        *_port("IB{end}", "[0-9]+"),
        *_port("{end}", ".+"),
    ),
    units={"": float(MIB), "GB": from_gigabytes(1)},
    meanings=gpu_copy.ENGINES,
    start={"host": "host", "unit": "GB"},
)
_Metric: TypeAlias = tuple[re.Match[str], float, Evidence]  # a name that matches _KEY, its value and its line


def read(part: Part) -> Iterator[Record]:
    """The rates of the first node in the file."""
    yield from with_gpus(_read(part))


def _read(part: Part) -> Iterator[Record]:
    first, others, metrics, cut = None, set[str](), list[_Metric](), list[NotChecked]()
    for document in documents(part, _BEGINS):
        if isinstance(document, NotChecked):
            cut.append(document)
            continue
        named = object_of(document.value).get("node")
        name = named if isinstance(named, str) else None
        first = first or name
        if name != first:
            others.add(f"{name}")
            continue
        for key, value in _metrics(document.value, part.file):
            if (found := _KEY.fullmatch(key)) and found["note"] != "correctness":  # runs that only check copies
                metrics.append((found, value, part.cite(document.line, f"{key}: {value:g}")))
    yield from read_rows(part, _TOOL, map(_row, metrics))
    yield from cut
    yield from _tables(part, metrics)
    yield from _collectives(part, metrics)
    yield from _disks(part, metrics)
    if others:
        count = len(others) + 1
        why = f"results of {count} nodes; only those of {first} are read (linkgauge evaluates one node at a time)"
        how = "pass the lines of one node only"
        yield NotChecked(what="dump", subject=part.file, reason=Reason.OTHER_CONTEXT, detail=why, how=how)


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


def _row(metric: _Metric) -> tuple[str, dict[str, str], Evidence]:
    """A metric as a row. Names with a single suffix have the rank in that suffix. It is 0 if there is one process."""
    key, value, cite = metric
    end = key["end"] or ""
    rank = key["rank"] or (end if end.isdecimal() else "0")
    return f"{key['name']} {key['metric']} {value!r}", {"end": end, "rank": rank}, cite


def _matching(
    metrics: Sequence[_Metric], name: str, pattern: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], float, Evidence]]:
    """The metrics of a benchmark whose names have a form, with the words of this form."""
    for key, value, cite in metrics:
        found = pattern.fullmatch(key["metric"]) if re.fullmatch(name, key["name"]) else None
        if found:
            yield found, value, cite


def _tables(part: Part, metrics: Sequence[_Metric]) -> Iterator[Observation]:
    tables: dict[str, list[tuple[Cell, Evidence]]] = defaultdict(list)
    for key, value, cite in _matching(metrics, "nvbandwidth", _MATRIX):
        table = tables[key[1]]
        table.append((Cell(int(key[2]), int(key[3]), value, len(table)), cite))
    for test, cells in tables.items():
        for flow, rate, cell in nvbandwidth.flows(test, "", [cell for cell, _ in cells]):
            yield part.rate(flow, rate, cells[cell.line][1])


def _collectives(part: Part, metrics: Sequence[_Metric]) -> Iterator[Observation]:
    found: dict[str, dict[int, dict[str, tuple[float, Evidence]]]] = defaultdict(lambda: defaultdict(dict))
    plain = [one for one in metrics if one[0]["note"] in _PLAIN]
    for key, value, cite in _matching(plain, "[nr]ccl-bw", _COLLECTIVE):
        if op := nccl.OPS.get(key[1]):
            found[op][int(key[2])].setdefault(key[3], (value, cite))
    for op, sizes in found.items():
        both = ((size, one) for size, one in sizes.items() if len(one) == 2)
        rows = [(size, one["algbw"][0], *one["busbw"]) for size, one in both]
        yield from nccl.bandwidths(part, rows, op, 0)


def _disks(part: Part, metrics: Sequence[_Metric]) -> Iterator[Observation]:
    """Operations per second, one block each."""
    disks: dict[tuple[str, str], dict[str, tuple[float, Evidence]]] = defaultdict(dict)
    for key, value, cite in _matching(metrics, "disk-benchmark", _DISK):
        disks[key[1], key[2]].setdefault(key[3], (value, cite))
    for (device, _), known in disks.items():
        size = known.get("bs", (0.0, None))[0]
        sides: Sequence[str] = [side for side in ("read", "write") if f"{side}_iops" in known and size]
        for side in sides:
            value, cite = known[f"{side}_iops"]
            yield part.rate(transfer(side, "host", device, int(size), len(sides) > 1), value * size, cite)
