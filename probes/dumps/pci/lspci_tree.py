"""lspci -t: a drawing of the bus tree (ls-tree.c of pciutils); with -v names, with -nn numbers.

A bus is in brackets after its bridge. The devices on it are on the same line to the right, or on the following lines,
starting at the column in which the first one began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Pci
from ....models.facts.records import Evidence, Record
from ..core.part import Part
from ..core.pci_words import identity

BEGIN = r"^[ \t]*-(?:\+-)?\[[0-9a-f]{4,8}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-"
_BRANCH = re.compile(r"[ |]*([-+\\])")
_ROOT = re.compile(r"[-+\\]*\[([0-9a-f]{4,8}):([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_DEVICE = re.compile(r"-*(?:\+-*)?([0-9a-f]{2}\.[0-7])(?:-\[([0-9a-f]{2})(?:-[0-9a-f]{2})?\])?")
_NUMBERS = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\][ \t]*$")
_BRIDGE = 0x060400
_MOST = 512  # maximum width of a tree, in columns


def read(part: Part) -> Iterator[Record]:
    """A `Pci` per function with its parent, and its name and numbers if the text has them."""
    buses: dict[int, tuple[str, str]] = {}  # by branch column: domain and bus, and the parent
    for number, line in part.lines():
        branch = _BRANCH.match(line)
        if not branch or len(line) > 4 * _MOST:
            continue
        column = branch.start(1)
        if root := _ROOT.match(line, column):
            bus, above, at = f"{root[1]}:{root[2]}", f"pci{root[1]}:{root[2]}", root.end()
        elif column in buses:
            (bus, above), at = buses[column], column + 1
        else:
            continue
        yield from _line_functions(part, number, line, at, bus, above, buses)


def _line_functions(
    part: Part, number: int, line: str, at: int, bus: str, above: str, buses: dict[int, tuple[str, str]]
) -> Iterator[Record]:
    """The functions of one line from left to right, each below the one before."""
    for column in [column for column in buses if column > at]:
        del buses[column]
    while at < len(line) and (device := _DEVICE.match(line, at)):
        branch = line.find("+", at, device.start(1))
        if branch >= 0:
            buses[branch] = bus, above
        address = f"{bus}:{device[1]}"
        at = device.end()
        evidence = part.cite(number, line)
        if device[2] is None:
            yield _leaf(address, above, line[at:], part.cite(number, line))
            return
        yield Pci(key=address, pci_class=_BRIDGE, parent=above, cites={"parent": evidence})
        bus, above = f"{bus.partition(':')[0]}:{device[2]}", address


def _leaf(address: str, above: str, what: str, evidence: Evidence) -> Pci:
    """A function without a bus below it, with its name."""
    numbers = _NUMBERS.search(what)
    vendor, device, name = identity((what[: numbers.start()] if numbers else what).strip())
    if numbers:
        vendor, device = int(numbers[1], 16), int(numbers[2], 16)
    fields = {"parent": above, "vendor": vendor, "device": device, "name": name}
    cites = {field: evidence for field, value in fields.items() if value is not None}
    return Pci(key=address, cites=cites, parent=above, vendor=vendor, device=device, name=name)
