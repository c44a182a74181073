"""Lines of lspci without the line of their function. The key of such a function is the file and the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from ....models.facts.machine import Pci
from ....models.facts.records import Evidence, Record
from ....models.facts.units import GIB, KIB, MIB
from ..core.part import Part

Readers = Mapping[str, tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Mapping[str, Any]]], ...]]

_NAMES = (
    "LnkCap:|LnkSta:|UESta:|CESta:|ACSCtl:|NUMA node|IOMMU group|Physical Slot:|DeviceName:|Kernel driver in use:"
    "|Subsystem:"
)
_ONCE = re.compile(rf"^[ \t]*({_NAMES}|Control: I/O|DevCtl:|Bus:|DevCap:|LnkCtl:)[^\n]*", re.MULTILINE)
# Lines near the beginning of a function, and lines near its end: lspci.c (show_terse, show_verbose, show_kernel) prints
# none of the first behind one of the others. A function that does not answer has no line of its registers.
_ORDERED = re.compile(
    r"^[ \t]+(?:(?P<first>DeviceName:|Subsystem:|Physical Slot:|Control: I/O"
    r"|Flags: (?:bus|fast|66MHz|medium|slow|user))"
    r"|(?P<lost>!!!)|(?P<registers>NUMA node|IOMMU group|Bus:|Region \d:|Memory at)"
    r"|(?P<late>Capabilities:|(?:Dev|Lnk|ACS)(?:Cap|Ctl|Sta):|Kernel (?:driver in use|modules):))",
    re.MULTILINE,
)
NO_HEADER = "!!! Unknown header type 7f"  # lspci.c: every read of the function gives ones
_LOST = re.compile(rf"^[ \t]+{NO_HEADER}", re.MULTILINE)
_GAP = re.compile(r"^[ \t]*(?:\[?\.{3}\]?|<snip>|\[?snip\]?)[^\n]*\n", re.MULTILINE | re.IGNORECASE)
_LINE = re.compile(
    rf"({_NAMES}|Region [12]:|RlxdOrd|MaxPayload(?= \d{{3,4}} bytes, MaxReadReq)|BAR [12]: current size:"
    r"|Express \(v\d\)(?= (?:Root|Downstream) Port)|TrErr[+-](?= Train))"
    r"(?:(?!LnkCap:|LnkSta:)[^\n])*"  # a sentence can have both
)
_BAR1 = re.compile(
    r"Region [12]: (?:\[virtual\] )?Memory at [0-9a-f]+ \(64-bit, prefetchable\)[^\n]*\[size=(\d{1,6}[KMGT])\]"
)
_PAYLOAD = re.compile(r"MaxPayload (\d{3,4}) bytes, MaxReadReq (\d{3,4}) bytes")
_RESIZABLE = re.compile(r"BAR [12]: current size: \w+, supported: (\d{1,6}[KMGT]?B(?: \d{1,6}[KMGT]?B)*)(?=\s|$)")
_UNASSIGNED = re.compile(r"Region 1: (?:\[virtual\] )?Memory at <(?:unassigned|ignored)> \(64-bit, prefetchable\)")
ANY_LINE = (
    r"^(?:[^\n]{0,120}[ \t`(|\"']Lnk(?:Sta|Cap):[ \t]{1,4}(?:Port #[0-9]{1,3}, )?(?:Speed[ =][0-9]"
    r"|[0-9.]{1,4}GT/s,? x[0-9])"
    r"|[ \t]*(?:NUMA node: [0-9]|IOMMU group: [0-9]"
    r"|Physical Slot: \S|Kernel driver in use: \S|Subsystem: [A-Z0-9]"
    r"|Region [0-5]: (?:\[virtual\] )?(?:Memory|I/O ports) at |DeviceName: \S|RlxdOrd[+-] "
    r"|MaxPayload \d{3,4} bytes, MaxR|BAR \d: current size: ))"
)
# A row with the address of a function and its link. It begins an output: readers of sentences would leave it out
LINK_ROW = r"^[ \t]{0,8}(?:[-*|][ ])?(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][ \t:,|]{1,8}Lnk(?:Cap|Sta):[ \t]"
# A port above another device: its type, or the data link state, which the device itself does not have (PCIe 5.0,
# 7.5.3.8).
_OF_A_PORT = re.compile(r"\) (?:Root|Downstream) Port|DLActive\+")
ADDRESS = re.compile(r"(?<![\w.:])(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7](?![\w.])", re.IGNORECASE)
# Words of prose for the other end of a link, for another device, or for another machine
_OTHERS = re.compile(
    r"(?<![\w-])(?:(?:root |bridge )?ports?|slots?|bridges?|switch|upstream|downstream|parent|riser|board|motherboard"
    r"|others?|another|second|healthy|working|good|neighbou?r)(?![\w+-])",
    re.IGNORECASE,
)
_OF_A_LINK = re.compile(r"Lnk(?:Cap|Sta):[^\n`]*")
_UNITS = {"K": KIB, "M": MIB, "G": GIB, "T": GIB << 10}
BRIDGE = 0x060400
_MOST = 2000  # functions


def without_address(part: Part, readers: Readers, contradictory: Callable[[str], bool]) -> Iterator[Record]:
    """A `Pci` per group of lines. A name that comes again is of the next function.

    `contradictory`: whether the capability and the state of a link in a text are of two functions.
    """
    groups: list[dict[str, tuple[int, re.Match[str]]]] = []
    for line, found in part.matches(_LINE):
        if not groups or found[1] in groups[-1] or _of_another(part.text, groups[-1], found):
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
    for line, _ in islice(part.matches(_LOST), 1):
        why = "a function gives ones for each register, and the line with its address is missing"
        yield part.gap(line, why, "Pci.lost", how="lspci -nn: such a function has (rev ff)")


def _of_another(text: str, group: Mapping[str, tuple[int, re.Match[str]]], found: re.Match[str]) -> bool:
    """Whether the words between the capability and the state of a link say that they are of two devices."""
    other = {"LnkCap:": "LnkSta:", "LnkSta:": "LnkCap:"}.get(found[1], "")
    if other not in group:
        return False
    begin = text.rfind("\n", 0, group[other][1].start()) + 1
    return names_others(text[begin : found.start()])


def names_others(text: str, own: str = "") -> bool:
    """Whether prose around lines of a link names another device than the own address, or the other end of the link."""
    prose = _OF_A_LINK.sub("", text)
    strangers = any(not own.endswith(found[0].lower()) for found in ADDRESS.finditer(prose))
    return strangers or bool(_OTHERS.search(prose))


def _fields(
    part: Part, group: Mapping[str, tuple[int, re.Match[str]]], readers: Readers
) -> tuple[dict[str, Any], dict[str, Evidence]]:
    fields: dict[str, Any] = {}
    cites: dict[str, Evidence] = {}
    for name, (line, found) in group.items():
        here = _alone(found[0])
        for pattern, parse in readers.get(name, ()):
            if whole := pattern.match(part.text, found.start()):
                here |= {key: value for key, value in parse(whole).items() if value is not None}
        fields |= here
        cites |= dict.fromkeys(here, part.cite(line, found[0]))
    return fields, cites


def _alone(line: str) -> dict[str, Any]:
    """The fields of a line that lspci.py reads only together with other lines."""
    if _UNASSIGNED.match(line):
        return {"bar1": 0}
    if found := _BAR1.match(line):
        return {"bar1": size_of(found[1])}
    if found := _RESIZABLE.match(line):
        return {"bar1_max": max(map(size_of, found[1].split()))}
    if found := _PAYLOAD.match(line):
        return {"max_payload": int(found[1]), "max_read_request": int(found[2])}
    return {"pci_class": BRIDGE} if _OF_A_PORT.search(line) else {}


def size_of(text: str) -> int:
    """The bytes of "256M", "128GB" or "512"."""
    digits = text.rstrip("KMGTB")
    return int(digits) * _UNITS.get(text[len(digits) :][:1], 1)


def end_of_function(text: str, start: int, end: int) -> int:
    """The position at which the lines of a function end: at a gap, or at the first line of another one, because the
    line with the next address is missing. Such a line comes again with another value, though each function has it once,
    or it is behind a line that the tool prints later.
    """
    gap = _GAP.search(text, start, end)
    stop = _out_of_order(text, start, gap.start() if gap else end)
    seen: dict[str, str] = {}
    for found in _ONCE.finditer(text, start, stop or (gap.start() if gap else end)):
        if seen.setdefault(found[1], found[0].strip()) != found[0].strip():
            return found.start()
    return stop or (gap.end() if gap else end)


def _out_of_order(text: str, start: int, end: int) -> int:
    """The position of the first line that is behind a line which the tool prints later; 0: none is."""
    seen: set[str] = set()
    for found in _ORDERED.finditer(text, start, end):
        kind = found.lastgroup or ""
        if kind == "first" and "late" in seen or kind == "lost" and seen & {"late", "registers"}:
            return found.start()
        seen.add(kind)
        if kind == "first" and found[1].startswith(("Control", "Flags")):
            seen.add("registers")
    return 0
