"""The configuration space that lspci -x, -xxx and -xxxx print in hexadecimal, and setpci of single registers.

PCI Express Base Specification 5.0, 7.5.1 (header) and 7.5.3 (PCI Express capability); names as in
include/uapi/linux/pci_regs.h; setpci(8).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.machine import Pci
from ....models.facts.records import Evidence, Record
from ...pcie.config_space import (
    ACS,
    ACS_CONTROL,
    LINK_CAPABILITY,
    LINK_STATUS,
    acs_names,
    capabilities_of,
    link_capability,
    link_of,
    link_status,
)
from ..core.part import Part

_BYTES = r"[0-9a-f]{2,3}: (?:[0-9a-f]{2} ){15}[0-9a-f]{2}[ \t]*$"
ROW = re.compile(rf"^[ \t]*{_BYTES}", re.MULTILINE)
_STEP = 16
_BRIDGE, _SECONDARY = 1, 0x19  # type of header, and the register of a bridge's lower bus
_ROOT_PORTS = (4, 6)  # root port of a PCI Express root complex; upstream ports have type 5


class Space(Struct):
    """What the hexadecimal lines of one function show."""

    fields: dict[str, Any] = field(default_factory=dict)
    secondary: int | None = None  # the number of the bus below a bridge
    lost: bool = False


def space_of(address: str, text: str) -> Space | None:
    """The values of a function's hexadecimal lines. None: it has none, or their beginning is missing."""
    config = bytearray()
    for found in ROW.finditer(text):
        offset, _, octets = found[0].strip().partition(": ")
        if int(offset, 16) != len(config):
            break
        config += bytes.fromhex(octets)
    if len(config) < 4 * _STEP:
        return None
    if set(config) == {0xFF}:
        return Space(lost=True)
    known = capabilities_of(address, bytes(config), "")
    fields = {name: getattr(known, name) for name in ("max_payload", "max_read_request", "acs")} if known else {}
    vendor, device = (int.from_bytes(config[at : at + 2], "little") for at in (0, 2))
    numbers = {"vendor": vendor, "device": device, "pci_class": int.from_bytes(config[9:12], "little")}
    space = Space({**numbers, **fields, **link_of(bytes(config))})
    if config[0x0E] & 0x7F == _BRIDGE and config[_SECONDARY]:
        space.secondary = config[_SECONDARY]
    return space


# "setpci -s 41:00.0 CAP_EXP+12.w" and its answer; several registers give several lines.
_SETPCI = r"(?:\S{0,60}[$#] ?)?(?:sudo )?setpci (?:-v )?-s ?"
# What "setpci -v" prints: the place of the capability, of the register, and its value.
_SHOWN = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \(cap [0-9a-f]{2,4} @[0-9a-f]{2,3}\) @[0-9a-f]{2,3} = "
SETPCI = rf"^[ \t]*(?:{_SETPCI}[0-9a-f:.]{{5,16}} [A-Z0-9_]|{_SHOWN}[0-9a-f])"
_VERBOSE = re.compile(
    r"^[ \t]*(?P<address>[0-9a-f:]{5,14}\.[0-7]) \(cap (?P<cap>[0-9a-f]{2,4}) @(?P<at>[0-9a-f]{2,3})\) "
    r"@(?P<register>[0-9a-f]{2,3}) = (?P<value>[0-9a-f]{4,8})[ \t]*$",
    re.MULTILINE,
)
_COMMAND = re.compile(
    rf"^[ \t]*{_SETPCI}(?P<address>[0-9a-f:]{{2,13}}\.[0-7]) (?P<registers>[^\n]{{1,200}})$", re.MULTILINE
)
_REGISTER = re.compile(r"CAP_EXP\+(?:0x)?0?([0-9a-f]{1,2})(?:\.([bwlBWL]))?$", re.IGNORECASE)
_VALUE = re.compile(r"[ \t]*(?:\S{5,80} = )?([0-9a-f]{4,8})[ \t]*$")


def registers(part: Part) -> Iterator[Record]:
    """A `Pci` per function whose link registers setpci has printed."""
    lines = part.text.split("\n")
    for number, found in part.matches(_COMMAND):
        fields: dict[str, Any] = {}
        cites: dict[str, Evidence] = {}
        for place, name in enumerate(found["registers"].split(), number + 1):
            value = _VALUE.match(lines[place]) if place < len(lines) else None
            here = _register(name, value[1]) if value else {}
            fields |= here
            cites |= dict.fromkeys(here, part.cite(place, lines[place])) if value else {}
        if fields:
            address = found["address"]
            yield Pci(key=address if address.count(":") == 2 else f"0000:{address}", cites=cites, **fields)


def verbose(part: Part) -> Iterator[Record]:
    """A `Pci` per line of setpci -v with a register of a link or of access control."""
    for number, found in part.matches(_VERBOSE):
        offset, value = int(found["register"], 16) - int(found["at"], 16), int(found["value"], 16)
        size = len(found["value"])
        fields: Mapping[str, Any] = {}
        if int(found["cap"], 16) == ACS and (offset, size) == (ACS_CONTROL, 4):
            fields = {"acs": acs_names(value)}
        elif found["cap"] in ("10", "0010") and (offset, size) == (LINK_CAPABILITY, 8):
            fields = link_capability(value)
        elif found["cap"] in ("10", "0010") and (offset, size) == (LINK_STATUS, 4):
            fields = link_status(value)
        if fields:
            address = found["address"]
            cites = dict.fromkeys(fields, part.cite(number, found[0]))
            yield Pci(key=address if address.count(":") == 2 else f"0000:{address}", cites=cites, **fields)


def _register(name: str, value: str) -> Mapping[str, Any]:
    """The fields of the link capability or of the link status. A value of another length is of another register."""
    found = _REGISTER.match(name)
    if not found:
        return {}
    offset, size = int(found[1], 16), (found[2] or "w").lower()
    if offset == LINK_CAPABILITY and size == "l" and len(value) == 8:
        return link_capability(int(value, 16))
    if offset == LINK_STATUS and size == "w" and len(value) == 4:
        return link_status(int(value, 16))
    return {}
