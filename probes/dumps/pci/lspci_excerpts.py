"""Lines of lspci without the line of their function. The key of such a function is the file and the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....models.facts.machine import Pci
from ....models.facts.records import Evidence, Record
from ..core.part import Part

Readers = Mapping[str, tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Mapping[str, Any]]], ...]]

_NAMES = (
    "LnkCap:|LnkSta:|ACSCtl:|DevCtl:|NUMA node|IOMMU group|Physical Slot:|DeviceName:|Kernel driver in use:|Subsystem:"
)
_LINE = re.compile(rf"({_NAMES}|Region 1:)[^\n]*")
_UNASSIGNED = re.compile(r"Region 1: (?:\[virtual\] )?Memory at <(?:unassigned|ignored)> \(64-bit, prefetchable\)")
ANY_LINE = (
    r"^[ \t]*(?:NUMA node: [0-9]|IOMMU group: [0-9]|Physical Slot: \S|Kernel driver in use: \S|Subsystem: [A-Z0-9]"
    r"|Region [0-5]: (?:\[virtual\] )?(?:Memory|I/O ports) at )"
)
_MOST = 2000  # functions


def without_address(part: Part, readers: Readers, contradictory: Callable[[str], bool]) -> Iterator[Record]:
    """A `Pci` per group of lines. A name that comes again is of the next function.

    `contradictory`: whether the capability and the state of a link in a text are of two functions.
    """
    groups: list[dict[str, tuple[int, re.Match[str]]]] = []
    for line, found in part.matches(_LINE):
        if not groups or found[1] in groups[-1]:
            groups.append({})
        groups[-1][found[1]] = line, found
        if len(groups) > _MOST:
            break
    for group in groups:
        fields, cites = _fields(part, group, readers)
        if contradictory("".join(f"{found[0]}\n" for _, found in group.values())):
            for name in ("width", "speed", "downgraded"):
                fields.pop(name, None)
                cites.pop(name, None)
        first, _ = next(iter(group.values()))
        if fields:
            yield Pci(key=part.where(first), cites=cites, **fields)


def _fields(
    part: Part, group: Mapping[str, tuple[int, re.Match[str]]], readers: Readers
) -> tuple[dict[str, Any], dict[str, Evidence]]:
    fields: dict[str, Any] = {}
    cites: dict[str, Evidence] = {}
    for name, (line, found) in group.items():
        if _UNASSIGNED.match(found[0]):
            fields["bar1"], cites["bar1"] = 0, part.cite(line, found[0])
        for pattern, parse in readers.get(name, ()):
            if whole := pattern.match(part.text, found.start()):
                here = {key: value for key, value in parse(whole).items() if value is not None}
                fields |= here
                cites |= dict.fromkeys(here, part.cite(line, found[0]))
    return fields, cites
