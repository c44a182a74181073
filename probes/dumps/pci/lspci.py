"""lspci of pciutils, in all verbosities: PCI functions, their place in the tree, their links (ls-caps.c, ls-ecaps.c).

Of the bits of corrected errors (CESta) the reader takes those of the link: others are set since boot on most machines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from ....models.facts.machine import Pci
from ....models.facts.pci_classes import NVIDIA, is_arc, kind_of
from ....models.facts.pcie_rates import generation
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.parsers import pcie_width
from ..core.part import Part
from ..core.pci_words import class_of, identity
from .drivers import GPU_DRIVERS, driver
from .lspci_errors import ERRORS
from .lspci_excerpts import ANY_LINE, LINK_ROW, NO_HEADER, end_of_function, size_of, without_address
from .lspci_gaps import gaps, is_unbound, without_state
from .lspci_hex import ROW, SETPCI, registers, space_of, verbose

__all__ = ["ANY_LINE", "BEGIN", "full_address", "read"]

# "0000:53:00.0 3D controller [0302]: NVIDIA ...", with -n "53:00.0 0302: 10de:2330"; or single lines from grep
BEGIN = (
    r"^[ \t]*(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:\"?[A-Z3][\w /.()-]{2,60}(?: \[[0-9a-f]{4}\])?|"
    r"(?:Class )?\[?[0-9a-f]{4}\]?): [^\n]|^[ \t]*(?:(?:Dev|Lnk|ACS)(?:Cap|Ctl|Sta)2?|[UC]ESta):[ \t]"
    r"|^[ \t]*Capabilities: \[[0-9a-f]{2,3}\] Express \(v"
    rf"|{SETPCI}|{LINK_ROW}"
)
_HEADER = re.compile(
    r"^[ \t]*(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:\n]{3,80}?)"
    r"(?: \[(?P<code>[0-9a-f]{4})\])?: (?P<what>[^\n]+)",
    re.MULTILINE,
)
_NUMBERS = re.compile(r"(?:\[|^)([0-9a-f]{4}):([0-9a-f]{4})(?:\]|(?= |$))")
_TAIL = re.compile(r" \((?:rev|prog-if) [0-9a-f]{2}\b.*$")


def read(part: Part) -> Iterator[Record]:
    """A `Pci` per function, with its parent if the bridges show their buses."""
    headers = list(part.matches(_HEADER))
    starts = [*(header.start() for _, header in headers), len(part.text)]
    blocks: list[_Block] = []
    loose = [(0, starts[0])]  # stretches of lines whose function is not named
    for (line, header), end in zip(headers, starts[1:], strict=True):
        own = end_of_function(part.text, header.start(), end)
        blocks.append(_Block(part, line, header, part.text[header.start() : own]))
        loose.append((own, end))
    parents = _parents(blocks)
    for block in blocks:
        yield block.fact(parents.get(block.address))
    for start, end in loose:
        if start < end:
            rest = replace(part, first=part.first + part.text.count("\n", 0, start), text=part.text[start:end])
            yield from without_address(rest, _READERS, _of_two_functions)
    yield from registers(part)
    yield from verbose(part)
    yield from _not_shown(part, blocks)


def _not_shown(part: Part, blocks: list[_Block]) -> Iterator[Record]:
    """NotChecked records: link states that are missing, and capabilities that only root sees."""
    if "Capabilities: <access denied>" in part.text:
        why = "lspci shows capabilities to root only"
        how = "sudo lspci -vvv"
        yield NotChecked(
            what="Pci.width", subject="node", reason=Reason.PERMISSION, path=part.file, detail=why, how=how
        )
    for block in blocks:
        if _DRIVER in block.text and "driver" not in block.fields and not block.lost:
            why = "the line of the driver is damaged: it names no known driver"
            yield NotChecked(
                what="Pci.driver", subject=block.address, reason=Reason.UNREADABLE, path=part.file, detail=why
            )
        if not block.lost:
            yield from gaps(Pci(key=block.address, **block.fields), block.text, part.file)
        yield from without_state(Pci(key=block.address, **block.fields), block.text, part.file)


class _Block:
    """The lines of one function."""

    def __init__(self, part: Part, line: int, header: re.Match[str], text: str) -> None:
        self.part, self.line, self.text = part, line, text
        self.address = full_address(header["address"])
        self.fields: dict[str, Any] = {}
        self.cites: dict[str, Evidence] = {}
        self._identity(header)
        space = space_of(self.address, text) if ROW.search(text) else None
        self.secondary = space.secondary if space else None
        unknown = text.find(NO_HEADER)
        self.lost = "(rev ff)" in header["what"] or unknown >= 0 or (space is not None and space.lost)
        if self.lost:
            self._set(max(unknown, 0), {"lost": True})
            self._take(_DRIVER, _READERS[_DRIVER])  # of the kernel, which still has the function
            return
        # link registers of a virtual function are zero (SR-IOV 1.1, 3.5)
        virtual = "Virtual Function" in header["what"]
        for needle in (one for one in _READERS if not (virtual and one.startswith("Lnk"))):
            self._take(needle, _READERS[needle])
        if space and (first := ROW.search(text)):
            self._set(first.start(), {name: value for name, value in space.fields.items() if name not in self.fields})
        if _of_two_functions(text):
            for name in ("width", "speed", "downgraded"):
                self.fields.pop(name, None)
        function = Pci(key=self.address, **self.fields)
        of_nvidia = function.vendor == NVIDIA and kind_of(function) == "gpu"
        if of_nvidia or is_arc(function):
            self._windows()
        if of_nvidia and self.fields.get("driver") not in (None, *GPU_DRIVERS):
            del self.fields["driver"], self.cites["driver"]
        if not virtual and (at := is_unbound(text)):
            self.fields["driver"] = ""
            self.cites["driver"] = part.cite(line + text.count("\n", 0, at), text[at:].partition("\n")[0])

    def fact(self, parent: str | None) -> Pci:
        """The function with all known fields."""
        return Pci(key=self.address, parent=parent, cites=self.cites, **self.fields)

    def _identity(self, header: re.Match[str]) -> None:
        what = _TAIL.sub("", header["what"])
        code = header["code"] or (header["kind"] if re.fullmatch("[0-9a-f]{4}", header["kind"]) else None)
        pci_class = int(code, 16) << 8 if code else class_of(header["kind"])
        numbers = list(_NUMBERS.finditer(what))
        vendor, device, name = identity(what[: numbers[-1].start()].strip() if numbers else what.strip())
        if numbers:
            vendor, device = int(numbers[-1][1], 16), int(numbers[-1][2], 16)
        if "(rev ff)" in header["what"] and device == 0xFFFF:
            vendor = device = None
        self._set(0, {"pci_class": pci_class, "vendor": vendor, "device": device, "name": name})

    def _take(self, needle: str, readers: tuple[tuple[re.Pattern[str], _Parse], ...]) -> None:
        """Read the first places of the needle. A command in the text can contain it too: lspci | grep LnkSta:"""
        found = islice(re.finditer(re.escape(needle), self.text), _PLACES) if needle in self.text else ()
        places = [one.start() for one in found]
        for pattern, parse in readers:
            if fits := next(filter(None, (pattern.match(self.text, at) for at in places)), None):
                self._set(fits.start(), parse(fits))

    def _windows(self) -> None:
        """Set the size of the second memory window, and its largest possible size. -v alone does not number the
        windows.
        """
        every = {found[0]: found for found in _WINDOW.finditer(self.text)}  # a line that is repeated counts once
        windows = [found for found in every.values() if found["number"] in (None, "0", "1", "2")]
        if len(windows) > 1:
            size = 0 if windows[1]["lost"] or windows[1]["where"].startswith("<") else size_of(windows[1]["size"])
            self._set(windows[1].start(), {"bar1": size})
        if found := _RESIZABLE.search(self.text):
            self._set(found.start(2), {"bar1_max": max(map(size_of, found[2].split()))})

    def _set(self, at: int, fields: Mapping[str, Any]) -> None:
        begin = self.text.rfind("\n", 0, at) + 1
        line = self.text[begin : end if (end := self.text.find("\n", at)) >= 0 else None]
        evidence = self.part.cite(self.line + self.text.count("\n", 0, at), line)
        for name, value in fields.items():
            if value is not None:
                self.fields[name], self.cites[name] = value, evidence
        if fields.get("lost"):
            self.cites["width"] = evidence


_PLACES = 3  # of a needle in a function
_Parse = Callable[[re.Match[str]], Mapping[str, Any]]


def full_address(text: str) -> str:
    """The address with its domain, which lspci omits on machines with a single domain."""
    return text if text.count(":") == 2 else f"0000:{text}"


def _speed(text: str) -> float | None:
    speed = float(text) * 1e9 if text[0].isdigit() else 0.0
    return speed if generation(speed) is not None else None


def _width(text: str) -> int | None:
    try:
        return pcie_width(text)
    except ValueError:
        return None


def _status(found: re.Match[str]) -> Mapping[str, Any]:
    """The trained link state. All bits are set if the function does not answer."""
    lost = found[1].lower().startswith("unknown") and (found[3] in ("63", "255") or None)
    below = tuple(name for name, mark in (("speed", found[2]), ("width", found[4])) if mark == " (downgraded)")
    return {"lost": lost, "speed": _speed(found[1]), "width": _width(found[3]), "downgraded": below or None}


def _of_two_functions(text: str) -> bool:
    """Whether the state is called "ok" although the capability has more lanes: lines between the two are missing."""
    capable, status = _CAPABLE.search(text), _STATUS.search(text)
    return bool(capable and status and status[4] == " (ok)" and int(capable[2]) > int(status[3]))


def _capability(found: re.Match[str]) -> Mapping[str, Any]:
    return {"max_speed": _speed(found[1]), "max_width": _width(found[2])}


def _relaxed(found: re.Match[str]) -> Mapping[str, Any]:
    return {"relaxed_ordering": found[1] == "+"}


def _sizes(found: re.Match[str]) -> Mapping[str, Any]:
    return {"max_payload": int(found[1] or found[2]), "max_read_request": int(found[3])}


def _acs_controls(found: re.Match[str]) -> Mapping[str, Any]:
    return {"acs": tuple(re.findall(r"\b(\w+)\+", found[0]))}


def _number(field: str) -> _Parse:
    return lambda found: {field: int(found[1])}


def _word(field: str) -> _Parse:
    return lambda found: {field: found[1].strip() or None}


def _subsystem(found: re.Match[str]) -> Mapping[str, Any]:
    return {"subvendor": int(found[1], 16), "subdevice": int(found[2], 16)}


# In a truncated text, "x1" can be the beginning of "x16": a delimiter must follow. No other width begins with "x4".
_END = r"(?:(?=[,\s(`;.)])|(?<=x[248])\Z|(?<=x(?:16|32))\Z)"
_GT = r"(\d{1,3}(?:\.\d{1,2})?|(?i:unknown))(?:GT/s)?"
# People leave the words out: "LnkSta: 16GT/s x8"
_STATUS = re.compile(rf"LnkSta:\s+(?:Speed[ =])?{_GT}( \(\w+\))?,? (?:Width[ =])?x(\d{{1,3}})(?:( \(\w+\))|{_END})")
_CAPABLE = re.compile(rf"LnkCap:\s+(?:Port #\d+, )?(?:Speed[ =])?{_GT},? (?:Width[ =])?x(\d{{1,3}}){_END}")
_ACS = re.compile(r"ACSCtl:[ \t]+(?:\w+[+-][ \t]*){7}(?=\n|$)")
_LINE = r"[ \t]*([^\n\t]{1,100}?)[ \t]*(?:\n|$)"
# By the first word of the line. A search for these few words is fast in a long text.
_DRIVER = "Kernel driver in use:"
_READERS: Mapping[str, tuple[tuple[re.Pattern[str], _Parse], ...]] = {
    "LnkCap:": ((_CAPABLE, _capability),),
    "LnkSta:": ((_STATUS, _status),),
    **ERRORS,
    "ACSCtl:": ((_ACS, _acs_controls),),
    "RlxdOrd": ((re.compile(r"RlxdOrd([+-])"), _relaxed),),
    " bytes, MaxReadReq ": (
        (
            re.compile(r"(?:(?<=MaxPayload (\d{3}))|(?<=MaxPayload (\d{4}))) bytes, MaxReadReq (\d{3,4}) bytes"),
            _sizes,
        ),
    ),
    "NUMA node": ((re.compile(r"NUMA node:? (\d{1,4})(?=[,\s])"), _number("numa")),),
    "IOMMU group": ((re.compile(r"IOMMU group:? (\d{1,5})(?=[,\s])"), _number("iommu_group")),),
    "Physical Slot:": ((re.compile(rf"Physical Slot:{_LINE}"), _word("slot")),),
    "DeviceName:": ((re.compile(rf"DeviceName:{_LINE}"), _word("label")),),
    _DRIVER: ((re.compile(rf"Kernel driver in use:{_LINE}"), driver),),
    "Subsystem:": ((re.compile(r"Subsystem:[^\n]*?\[?([0-9a-f]{4}):([0-9a-f]{4})\]?(?:\n|$)"), _subsystem),),
}
_WINDOW = re.compile(
    r"^[ \t]*(?:Region (?P<number>\d): )?(?:\[virtual\] )?Memory at (?:(?P<lost><(?:unassigned|ignored)>) [^\n]*"
    r"|(?P<where>\S+) [^\n]*\[size=(?P<size>\d{1,6}[KMGT]?)\])",
    re.MULTILINE,
)
_RESIZABLE = re.compile(
    r"Physical Resizable BAR[^\n]*\n(?:\s+BAR 0:[^\n]*\n)?\s+BAR ([12]): current size: \w+, "
    r"supported: (\d{1,6}[KMGT]?B(?: \d{1,6}[KMGT]?B)*)(?=\s|$)"
)
_BUSES = re.compile(r"Bus: primary=([0-9a-f]{2}), secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")


def _parents(blocks: list[_Block]) -> Mapping[str, str]:
    """The parent of each function: the bridge with its bus as secondary bus, or the root of its bus.

    A root's own bus has host bridges, root ports and integrated functions. If none of them is in the text, the bridge
    may be missing from the text, and the function has no parent.
    """
    bridges: dict[str, str] = {}
    roots: set[str] = set()
    for block in blocks:
        at = block.text.find("Bus: primary=")
        domain, bus, _ = block.address.split(":")
        if at >= 0 and (found := _BUSES.match(block.text, at)) and found[2] != "00":
            bridges[f"{domain}:{found[2]}"] = block.address
        elif block.secondary:
            bridges[f"{domain}:{block.secondary:02x}"] = block.address
        if block.fields.get("pci_class") == 0x060000 or re.search(r"Express [^\n]{0,8}Root ", block.text):
            roots.add(f"{domain}:{bus}")
    parents: dict[str, str] = {}
    for block in blocks:
        bus = block.address.rpartition(":")[0]
        if bus in bridges and bridges[bus] != block.address:
            parents[block.address] = bridges[bus]
        elif bus in roots:
            parents[block.address] = f"pci{bus}"
    return parents
