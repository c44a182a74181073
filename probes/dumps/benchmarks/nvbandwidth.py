"""Results of nvbandwidth, as text and as JSON: https://github.com/NVIDIA/nvbandwidth, testcases_*.cpp.

A bidirectional test reports only the measured stream, while the other stream runs. Matrices named Total are sums, and
the reader skips them. For copies between GPUs, the name of the test determines the sender: a row writes to its columns,
or a row reads from its columns. The headings do not show it in the same way in all versions. The host end is the memory
nearest to the GPU, because the tool binds itself to the processor there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import Cell, cells, implied_gpus, truncation
from ..core.part import Part

BEGIN = (
    r"^[ \t]*(?:nvbandwidth Version: |Running (?:benchmark )?\w{1,80}_(?:memcpy|copy|latency)\w{0,40}\.[ \t]*$"
    r"|memcpy (?:CE|SM) [CG]PU\(row\)|Device [0-9]{1,4}: [^\n]{1,100} \([0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\)[ \t]*$)"
    r'|^\{\s{0,40}"nvbandwidth"\s*:'
)
_TEST = re.compile(r"\s*Running (?:benchmark )?(\w+)\.\s*")
_MATRIX = re.compile(r"\s*(memcpy .*\bbandwidth \(GB/s\))\s*")
_GPU = re.compile(r"\s*Device (\d{1,4}): (\S.*?) \(([0-9a-f]{8}):([0-9a-f]{2}:[0-9a-f]{2})\)\s*")
_DRIVER = re.compile(r"^[ \t]*Driver Version: (\d[\d.]*)[ \t]*$", re.MULTILINE)
_HOST_TEST = re.compile(r"(host|device)_to_(host|device)(_bidirectional)?_memcpy_(ce|sm)")
_ALL_TEST = re.compile(r"(all_to_host|host_to_all)_memcpy_(ce|sm)")
_PEER_TEST = re.compile(r"device_to_device(_bidirectional)?_memcpy_(read|write)_(ce|sm)")
_HEADING = re.compile(r"memcpy (CE|SM) CPU\(row\) (->|<-) GPU\(column\) bandwidth \(GB/s\)")
_STREAM = re.compile(r"\b(?:Read|Write)([12])\b")
_OPS = {"ce": "copy", "sm": "copy-sm"}


@dataclass(frozen=True, slots=True)
class Table:
    """One matrix: its test, and its heading."""

    test: str | None
    heading: str
    cells: tuple[Cell, ...]


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy."""
    records = list(_read_json(part) if part.text.lstrip().startswith("{") else _read_text(part))
    yield from (*records, *implied_gpus(records))


def _read_text(part: Part) -> Iterator[Record]:
    lines = part.text.split("\n")
    if driver := _DRIVER.search(part.text):
        line = part.text.count("\n", 0, driver.start(1))
        yield Driver(key="nvidia", version=driver[1], cites={"version": part.cite(line, lines[line])})
    test = None
    for number, line_text in enumerate(lines):
        if gpu := _GPU.fullmatch(line_text):
            cite = part.cite(number, line_text)
            key, address = f"gpu{int(gpu[1])}", f"{int(gpu[3], 16):04x}:{gpu[4]}.0"
            yield Gpu(key=key, name=gpu[2], address=address, cites={"name": cite, "address": cite})
        elif named := _TEST.fullmatch(line_text):
            test = named[1]
        elif heading := _MATRIX.fullmatch(line_text):
            for flow, cell in flows(Table(test, heading[1], tuple(cells(lines, number + 1)))):
                yield part.rate(flow, from_gigabytes(cell.value), part.cite(cell.line, lines[cell.line]))
            if end := truncation(lines, number + 1, square=(test or "").startswith("device_to_device")):
                yield part.cut(*end)


def _read_json(part: Part) -> Iterator[Record]:
    """The same from JSON. A truncated JSON document gives no rates."""
    try:
        whole, _ = json.JSONDecoder().raw_decode(part.text.lstrip())
        tests = whole["nvbandwidth"]["testcases"]
        version = whole["nvbandwidth"].get("Driver Version")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        yield NotChecked(
            what="dump",
            subject=part.file,
            reason=Reason.INCOMPLETE,
            path=part.where(0),
            detail=f"JSON of nvbandwidth: {wrong!r}",
        )
        return
    if isinstance(version, str) and re.fullmatch(r"\d[\d.]*", version):
        yield Driver(key="nvidia", version=version, cites={"version": part.cite(0, f"Driver Version: {version}")})
    for one in tests if isinstance(tests, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            table = Table(one["name"], str(one.get("bandwidth_description", "")), tuple(_json_cells(one)))
            place = re.search(rf'"name"\s*:\s*"{re.escape(table.test or "")}"', part.text)
            line = part.text.count("\n", 0, place.start()) if place else 0
            for flow, cell in flows(table):
                shown = f"{table.test} [{cell.row}][{cell.column}]: {cell.value:g}"
                yield part.rate(flow, from_gigabytes(cell.value), part.cite(line, shown))


def _json_cells(test: dict[str, Any]) -> Iterator[Cell]:
    matrix = test.get("bandwidth_matrix")
    for row, values in enumerate(matrix if isinstance(matrix, list) else ()):
        for column, text in enumerate(values if isinstance(values, list) else ()):
            if isinstance(text, str) and re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", text) and float(text):
                yield Cell(row, column, float(text), 0)


def flows(table: Table) -> Iterator[tuple[Flow, Cell]]:
    """The flow of each cell. Sums, tests of several nodes, and copies inside a GPU have none."""
    test = table.test or ""
    if host := _HOST_TEST.fullmatch(test):
        yield from _host_flows(table, _OPS[host[4]], host[1] == "host", bool(host[3]))
    elif every := _ALL_TEST.fullmatch(test):
        yield from _concurrent_flows(table, _OPS[every[2]], every[1] == "host_to_all")
    elif peers := _PEER_TEST.fullmatch(test):
        yield from _peer_flows(table, _OPS[peers[3]], peers[2] == "write", bool(peers[1]))
    elif not test and (heading := _HEADING.fullmatch(table.heading)):
        yield from _host_flows(table, _OPS[heading[1].lower()], heading[2] == "->", False)


def _host_flows(table: Table, op: str, out: bool, both: bool) -> Iterator[tuple[Flow, Cell]]:
    for cell in table.cells:
        ends = ("host", f"gpu{cell.column}") if out else (f"gpu{cell.column}", "host")
        yield Flow(op, ends, beside=(ends[::-1],) if both else ()), cell


def _concurrent_flows(table: Table, op: str, out: bool) -> Iterator[tuple[Flow, Cell]]:
    """The flow of each GPU while all others copy in the same direction."""
    every = [("host", f"gpu{cell.column}") if out else (f"gpu{cell.column}", "host") for cell in table.cells]
    for ends, cell in zip(every, table.cells, strict=True):
        yield Flow(op, ends, beside=tuple(other for other in every if other != ends)), cell


def _peer_flows(table: Table, op: str, write: bool, both: bool) -> Iterator[tuple[Flow, Cell]]:
    """With two streams, the row receives the first and sends the second (testcases_ce.cpp)."""
    stream = _STREAM.search(table.heading)
    if both and not stream:
        return
    out = stream[1] == "2" if both and stream else write
    for cell in table.cells:
        if cell.row != cell.column:
            ends = (f"gpu{cell.row}", f"gpu{cell.column}") if out else (f"gpu{cell.column}", f"gpu{cell.row}")
            yield Flow(op, ends, beside=(ends[::-1],) if both else ()), cell
