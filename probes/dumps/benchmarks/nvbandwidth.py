"""Results of nvbandwidth, as text and as JSON: https://github.com/NVIDIA/nvbandwidth, testcases_*.cpp.

A bidirectional test reports only the measured stream, while the other stream runs. Matrices named Total are sums, and
the reader skips them. For copies between GPUs, the name of the test determines the sender: a row writes to its columns,
or a row reads from its columns. The headings do not show it in the same way in all versions. The host end is the memory
nearest to the GPU, because the tool binds itself to the processor there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....models.facts.gpu import Driver
from ....models.facts.records import Flow, Record
from ....models.facts.units import from_gigabytes
from ..core.json_values import list_of, objects
from ..core.matrix import Cell, with_gpus
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Line, Tool
from ..core.tables import flows as flows_of
from ..lines.json_text import decoded, whole_characters

BEGIN = (
    r"^[ \t]*(?:nvbandwidth Version: |Running (?:benchmark )?\w{1,80}_(?:memcpy|copy|latency)\w{0,40}\.[ \t]*$"
    r"|Driver Version: [\d.]{3,16}[ \t]{0,8}\n(?:[ \t]{0,8}\n)?[ \t]{0,8}Device [0-9]{1,4}: "
    r"|memcpy (?:CE|SM) [CG]PU\(row\)|Device [0-9]{1,4}: [^\n]{1,100} \([0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\)[ \t]*$)"
    r'|^\{\s{0,40}"nvbandwidth"\s*:'
)
_DRIVER = re.compile(r"^[ \t]*Driver Version: (\d[\d.]*)[ \t]*$", re.MULTILINE)
_H2D, _D2H = ("host", "gpu{column}"), ("gpu{column}", "host")
_OUT, _BACK = ("gpu{row}", "gpu{column}"), ("gpu{column}", "gpu{row}")


def _cases(engine: str, op: str) -> tuple[Case, ...]:
    """What the tests of copies by copy engines (ce) or by kernels (sm) measure."""
    name = rf"{{}}_memcpy_{engine}".format
    peers, both = (
        rf"device_to_device_memcpy_{{}}_{engine}".format,
        rf"device_to_device_bidirectional_memcpy_{{}}_{engine}",
    )
    heading = rf"memcpy {engine.upper()} CPU\(row\) {{}} GPU\(column\) bandwidth \(GB/s\)".format
    stream = r".*\b(?:Read|Write){}\b.*".format
    # The heading of another test is below the line of this one if a line is missing.
    other = "SM" if engine == "ce" else "CE"
    host, hosts = rf"(?!.* {other} |.*<->)(?:.*CPU.*|)", rf"(?!.* {other} )(?:.*CPU.*|)"
    gpus = rf"(?!.* {other} |.*CPU).*"
    return (
        Case(_H2D, {"test": name("host_to_(?:host|device)"), "heading": host}, op),
        Case(_H2D, {"test": name("host_to_(?:host|device)_bidirectional"), "heading": hosts}, op, both="each"),
        Case(_D2H, {"test": name("device_to_(?:host|device)"), "heading": host}, op),
        Case(_D2H, {"test": name("device_to_(?:host|device)_bidirectional"), "heading": hosts}, op, both="each"),
        Case(_H2D, {"test": name("host_to_all"), "heading": host}, op, together=True),
        Case(_D2H, {"test": name("all_to_host"), "heading": host}, op, together=True),
        Case(_OUT, {"test": peers("write"), "heading": gpus}, op),
        Case(_BACK, {"test": peers("read"), "heading": gpus}, op),
        # With two streams, the row receives the first and sends the second (testcases_ce.cpp).
        Case(_OUT, {"test": both.format("(?:read|write)"), "heading": stream(2)}, op, both="each"),
        Case(_BACK, {"test": both.format("(?:read|write)"), "heading": stream(1)}, op, both="each"),
        Case(_H2D, {"test": "", "heading": heading("->")}, op),
        Case(_D2H, {"test": "", "heading": heading("<-")}, op),
    )


_TOOL = Tool(
    lines=(
        Line(
            r"Device (?P<gpu>\d{1,4}): (?P<name>\S.*?) \((?P<domain>[0-9a-f]{8}):(?P<bus>[0-9a-f]{2}):"
            r"(?P<slot>[0-9a-f]{2})\)"
        ),
        Line(r"Device (?P<gpu>\d{1,4}): (?P<name>(?:NVIDIA|Tesla|Quadro|GeForce) [\w /-]{1,60})"),  # without addresses
        Line(r"Running (?:benchmark )?(?P<test>\w+)\."),
        Line(r"(?P<heading>memcpy .*\bbandwidth \(GB/s\))", matrix=True),
    ),
    cases=(*_cases("ce", "copy"), *_cases("sm", "copy-sm")),
    units={"": from_gigabytes(1)},
)


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and the rate of each copy."""
    yield from with_gpus(_read_json(part) if part.text.lstrip().startswith("{") else _read_text(part))


def _read_text(part: Part) -> Iterator[Record]:
    if driver := _DRIVER.search(part.text):
        line = part.text.count("\n", 0, driver.start(1))
        yield Driver(key="nvidia", version=driver[1], cites={"version": part.cite(line, driver[0])})
    yield from read_tool(part, _TOOL)


def flows(test: str, heading: str, cells: Sequence[Cell]) -> Iterator[tuple[Flow, float, Cell]]:
    """The flow and the rate of each cell. Sums, tests of several nodes, and copies inside a GPU have none."""
    return flows_of(_TOOL, {"test": test, "heading": heading}, cells)


def _read_json(part: Part) -> Iterator[Record]:
    """The same from JSON. A truncated JSON document gives no rates."""
    try:
        whole = decoded(whole_characters(part.text).lstrip())[0]["nvbandwidth"]
        tests, version = whole["testcases"], whole.get("Driver Version")
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        yield part.gap(0, f"JSON of nvbandwidth: {wrong!r}", "dump", how=None, subject=part.file)
        return
    if isinstance(version, str) and re.fullmatch(r"\d[\d.]*", version):
        yield Driver(key="nvidia", version=version, cites={"version": part.cite(0, f"Driver Version: {version}")})
    for one in objects(tests):
        if isinstance(test := one.get("name"), str):
            place = re.search(rf'"name"\s*:\s*"{re.escape(test)}"', part.text)
            line = part.text.count("\n", 0, place.start()) if place else 0
            for flow, rate, cell in flows(test, str(one.get("bandwidth_description", "")), tuple(_json_cells(one))):
                yield part.rate(flow, rate, part.cite(line, f"{test} [{cell.row}][{cell.column}]: {cell.value:g}"))


def _json_cells(test: dict[str, Any]) -> Iterator[Cell]:
    for row, values in enumerate(list_of(test.get("bandwidth_matrix"))):
        for column, text in enumerate(list_of(values)):
            if isinstance(text, str) and re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", text) and float(text):
                yield Cell(row, column, float(text), 0)
