"""pciconf -l of FreeBSD with -c, -v or both (usr.sbin/pciconf/pciconf.c and cap.c): PCI functions and their links.

"link x8(x16) speed 8.0(16.0)" has the present value and in brackets the largest one of the function. A port without a
device below it has x0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.machine import Pci
from ....models.facts.pcie_rates import generation
from ....models.facts.records import Evidence, Record
from ...parsing.parsers import pcie_width
from ..core.part import Part
from ..core.pci_words import identity, vendor_text
from .lspci_excerpts import BRIDGE

_ROW = r"[\w.-]{1,40}@pci(?P<domain>\d{1,5}):(?P<bus>\d{1,3}):(?P<slot>\d{1,2}):(?P<function>[0-7]):"
_LINK = r"link x\d{1,2}\(x\d{1,2}\)"
BEGIN = rf"^[ \t]*(?:{re.sub(r'[?]P<[a-z]+>', '?:', _ROW)}[ \t]|cap 10\[[0-9a-f]{{2,3}}\] = PCI-Express )"
ANY_LINE = rf"^[ \t]*{_LINK}(?: speed [0-9]|[ \t]*$)"
_LINES = re.compile(
    rf"^[ \t]*{_ROW}[ \t]+(?P<numbers>[^\n]+)"
    r"|^[ \t]*(?P<what>vendor|device)[ \t]*= '(?P<text>[^'\n]{1,120})'"
    r"|^[ \t]*cap 10\[[0-9a-f]{2,3}\] = PCI-Express \d (?P<type>[A-Za-z -]{1,30})"
    r"|(?<![\w-])link x(?P<width>\d{1,2})\(x(?P<most>\d{1,2})\)"
    r"(?: speed (?P<speed>\d{1,2}\.\d)\((?P<fastest>\d{1,2}\.\d)\))?",
    re.MULTILINE,
)
_NUMBERS = re.compile(
    r"(?<!\w)(?:(class)=0x([0-9a-f]{6})|(vendor|device)=0x([0-9a-f]{4})|(chip)=0x([0-9a-f]{8}))(?![0-9a-f])"
)
_GAP = re.compile(r"[^\s\w]*\.\.\.|[^\s=@]+ [^=@]*$")  # "...", "[...]" or words in the place of lines
_PORT = re.compile(r"(?:root|downstream|upstream) port", re.IGNORECASE)


def read(part: Part) -> Iterator[Record]:
    """A `Pci` for each function. One whose first line is missing has the place of its link as its key."""
    one, last = _Function(), 0
    gaps = [number for number, line in part.lines() if _GAP.match(line)]
    for number, found in part.matches(_LINES):
        if any(last < gap < number for gap in gaps):
            yield from one.facts()
            one = _Function(part.where(number))
        last = number
        cite = part.cite(number, found[0])
        if found["numbers"]:
            yield from one.facts()
            one = _Function(_address(found))
            one.set(cite, _identity(found["numbers"]))
        elif found["what"]:
            if found["what"] in one.texts or "width" in one.fields:  # the first line of this function is missing
                yield from one.facts()
                one = _Function(part.where(number))
            one.texts[found["what"]] = found["text"], cite
        elif found["type"]:
            if not one.key or "width" in one.fields:
                yield from one.facts()
                one = _Function(part.where(number))
            if _PORT.search(found["type"]) and "pci_class" not in one.fields:
                one.set(cite, {"pci_class": BRIDGE})
        else:
            if not one.key or "max_width" in one.fields:
                yield from one.facts()
                one = _Function(part.where(number))
            one.set(cite, _link(found))
    yield from one.facts()


class _Function:
    """The lines of one function."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.fields: dict[str, Any] = {}
        self.cites: dict[str, Evidence] = {}
        self.texts: dict[str, tuple[str, Evidence]] = {}

    def set(self, cite: Evidence, fields: Mapping[str, Any]) -> None:
        """Add the fields that are not None."""
        known = {name: value for name, value in fields.items() if value is not None}
        self.fields |= known
        self.cites |= dict.fromkeys(known, cite)

    def facts(self) -> Iterator[Pci]:
        """The function, if something is known of it."""
        if "device" in self.texts:
            text, cite = self.texts["device"]
            vendor = self.texts.get("vendor", (vendor_text(self.fields.get("vendor")), cite))[0]
            whole = f"{vendor} {text}"
            self.set(cite, {"name": (identity(whole)[2] or whole) if vendor else None})
        if self.key and self.fields:
            yield Pci(key=self.key, cites=self.cites, **self.fields)


def _address(found: re.Match[str]) -> str:
    domain, bus, slot, function = (int(found[name]) for name in ("domain", "bus", "slot", "function"))
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}"


def _identity(text: str) -> Mapping[str, Any]:
    """Class, vendor and device. Before FreeBSD 13, one number has device and vendor: "chip=0x268410de"."""
    found = (list(filter(None, one)) for one in _NUMBERS.findall(text))
    numbers = {name: int(digits, 16) for name, digits in found}
    chip = numbers.get("chip")
    return {
        "pci_class": numbers.get("class"),
        "vendor": numbers.get("vendor") if chip is None else chip & 0xFFFF,
        "device": numbers.get("device") if chip is None else chip >> 16,
    }


def _link(found: re.Match[str]) -> Mapping[str, Any]:
    return {
        "width": _width(found["width"]),
        "max_width": _width(found["most"]),
        "speed": _speed(found["speed"]),
        "max_speed": _speed(found["fastest"]),
    }


def _width(text: str) -> int | None:
    try:
        return pcie_width(text) or None
    except ValueError:
        return None


def _speed(text: str | None) -> float | None:
    speed = float(text or 0) * 1e9
    return speed if generation(speed) is not None else None
