"""numactl --hardware: NUMA nodes, their CPUs, memory and distances; numastat -m: their memory (numactl.c and numastat.c
of https://github.com/numactl/numactl).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from ....models.facts.machine import Numa
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ....models.facts.units import MIB
from ..core.part import Part

_TABLE = r"[ ]{8,60}Node [0-9]{1,4}(?:[ ]{2,40}Node [0-9]{1,4}){0,60}(?:[ ]{2,40}Total)?[ \t]*$"
BEGIN = (
    r"^(?:[ \t]*(?:available: [0-9]{1,4} nodes? \(|node [0-9]{1,4} (?:cpus:|size:)|node distances:"
    rf"|Per-node system memory usage \()|{_TABLE})"
)
_COLUMNS = re.compile(_TABLE)
_TOTALS = re.compile(r"[ \t]*MemTotal((?:[ ]{1,40}[0-9]{1,10}\.[0-9]{2}){1,62})[ \t]*$")
_CPUS = re.compile(r"[ \t]*node ([0-9]{1,4}) cpus:((?:[ ][0-9]{1,10})*)[ \t]*$")
_SIZE = re.compile(r"[ \t]*node ([0-9]{1,4}) size: ([0-9]{1,12}) MB[ \t]*$")
_HEADING = re.compile(r"[ \t]*node((?:[ ]+[0-9]{1,4})+)[ \t]*$")
_ROW = re.compile(r"[ \t]*([0-9]{1,4}):((?:[ ]+[0-9]{1,4})+)[ \t]*$")
_AVAILABLE = re.compile(r"[ \t]*available: ([0-9]{1,4}) nodes? \(")
_LEAST = 10  # the distance of a node to itself
_SHORTEST, _LONGEST = len("0: 10"), 64 * 1024  # characters of a line


def read(part: Part) -> Iterator[Record]:
    """A `Numa` per node. An older numactl omits the distances to nodes without memory."""
    nodes: dict[str, Numa] = {}
    columns: list[str] = []
    listed: list[str] = []
    available = rows = 0
    for number, line in part.lines():
        if len(line) < _SHORTEST or len(line) > _LONGEST:
            continue
        cite = partial(part.cite, number, line)
        if found := _CPUS.match(line):
            if _are_in_order(found[2].split()):
                cpus = tuple(map(int, found[2].split()))
                _add(nodes, found[1], {"cpus": cite()}, Numa(key="", cpus=cpus))
            else:
                yield _damaged(f"numa{int(found[1])}", cite().source)
        elif found := _SIZE.match(line):
            _add(nodes, found[1], {"memory": cite()}, Numa(key="", memory=int(found[2]) * MIB))
        elif _COLUMNS.match(line):
            listed = re.findall(r"[0-9]+", line)
        elif (found := _TOTALS.match(line)) and listed:
            for node, size in zip(listed, found[1].split(), strict=False):
                _add(nodes, node, {"memory": cite()}, Numa(key="", memory=int(float(size) * MIB)))
        elif found := _HEADING.match(line):
            columns, rows = found[1].split(), 0
        elif found := _AVAILABLE.match(line):
            available = int(found[1])
        elif (found := _ROW.match(line)) and len(found[2].split()) == len(columns) and _are_distances(found[2]):
            pairs = zip(columns, found[2].split(), strict=True)
            distances = {f"numa{int(column)}": int(distance) for column, distance in pairs}
            _add(nodes, found[1], {"distances": cite()}, Numa(key="", distances=distances))
            rows += 1
    yield from nodes.values()
    if 0 < len(nodes) < available:
        yield part.cut(part.text.rstrip().count("\n"), f"after {len(nodes)} of {available} nodes")
    elif 0 < rows < len(columns):
        yield part.cut(part.text.rstrip().count("\n"), f"after {rows} of {len(columns)} rows of distances")


def _are_in_order(numbers: list[str]) -> bool:
    """Whether the numbers ascend as numactl prints them, and none is two numbers without the blank: 23 behind 0 1."""
    plain = all(text == str(int(text)) for text in numbers)
    pairs = list(zip(map(int, numbers), map(int, numbers[1:]), strict=False))
    ascending = all(one < other for one, other in pairs)
    steps = [other - one for one, other in pairs]
    fused = (
        numbers[place + 2] == f"{other + step}{other + 2 * step}"
        for place, ((_, other), step) in enumerate(zip(pairs[:-1], steps, strict=False))
    )
    return plain and ascending and not any(fused)


def _damaged(node: str, where: str) -> NotChecked:
    why = "the numbers of the CPUs are not in the order of the tool: one is damaged, or a blank is missing"
    return NotChecked(what="Numa.cpus", subject=node, reason=Reason.UNREADABLE, path=where, detail=why)


def _are_distances(cells: str) -> bool:
    """ACPI reserves 0 to 9 (6.5, 5.2.17): a smaller number is the beginning of one that is cut."""
    return all(int(cell) >= _LEAST for cell in cells.split())


def _add(nodes: dict[str, Numa], number: str, cites: Mapping[str, Evidence], fact: Numa) -> None:
    """Add the values of one line to a node. The first value counts."""
    key = f"numa{int(number)}"
    known = nodes.get(key, Numa(key=key))
    new = {field: getattr(fact, field) for field in cites if getattr(known, field) is None}
    nodes[key] = replace(known, cites={**cites, **known.cites}, **new)
