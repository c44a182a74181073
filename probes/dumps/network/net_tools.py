"""Tools for network devices: ethtool(8) with and without -i, and ip(8): link, addr, -s.

The reader does not store network addresses. nic_counters.py reads `ethtool -S`, nic_module.py reads `ethtool -m`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.machine import Net, Pci
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ....models.facts.units import from_megabits
from ...parsing.parsers import shown
from ..core.fields import FactCollector
from ..core.part import Part

_NAME = r"[\w.-]{1,64}"
BEGIN = (
    rf"^[ \t]*(?:Settings for {_NAME}:[ \t]*$"
    r"|driver: [\w-]{1,40}[ \t]*\n[ \t]*version: |"
    rf"[0-9]{{1,5}}: {_NAME}(?:@{_NAME})?: <[A-Z0-9_,-]{{0,200}}> mtu [0-9])"
)
# Lines of both tools without the device above them.
ANY_LINE = (
    r"^[ \t]*(?:Speed: [0-9]{2,7}Mb/s|Link detected: (?:yes|no)|Duplex: (?:Full|Half)"
    r"|[RT]X(?: errors)?:[ ]+bytes[ ]+packets[ ]+errors"
    r"|link/(?:ether|infiniband|loopback) [0-9a-f:]{17}|(?:Supported|Link partner advertised) link modes:)"
)
_UNNAMED = "nic"
_SETTINGS = re.compile(rf"\s*Settings for (?P<name>{_NAME}):\s*")
_FIELD = re.compile(r"(?P<name>[A-Za-z][\w -]{0,40}?):\s*(?P<value>.*)")
_MODE = re.compile(r"\b([0-9]{2,7})base[A-Z]")
_SPEED = re.compile(r"([0-9]{1,7})Mb/s")
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DEVICE = re.compile(
    rf"\s*[0-9]{{1,5}}: (?P<name>{_NAME})(?:@{_NAME})?: <(?P<flags>[A-Z0-9_,-]{{0,200}})> mtu (?P<mtu>[0-9]{{1,6}})\b"
)
# iproute2, ip/ipaddress.c: print_link_flags
_FLAGS = frozenset(
    ("LOOPBACK", "BROADCAST", "POINTOPOINT", "MULTICAST", "NOARP", "ALLMULTI", "PROMISC", "MASTER", "SLAVE", "DEBUG")
    + ("DYNAMIC", "AUTOMEDIA", "PORTSEL", "NOTRAILERS", "UP", "LOWER_UP", "DORMANT", "ECHO", "RUNNING", "NO-CARRIER")
    + ("M-DOWN",)
)
_TYPE = re.compile(r"\s+link/(?P<type>[a-z]{2,20})\b")
TYPES = {"ether": "ethernet", "infiniband": "infiniband", "loopback": "loopback"}
_ETHTOOL_FILE = re.compile(r"(?:^|/)ethtool_-i_([A-Za-z][\w-]{0,30})$")  # file names of sosreports
_COUNTS = re.compile(r"\s+(?P<direction>[RT]X)(?: errors)?:\s+(?P<names>[a-z]+(?:\s+[a-z_]+)*)\s*")
_STORED = {"bytes": "bytes", "errors": "count"}
_ONCE = frozenset({"Speed", "Duplex", "Link detected"})
_LISTS = {"Supported link modes": "max_speed", "Link partner advertised link modes": "partner_speed"}


class _Reading(Struct):
    """The values read so far, and the position in the output."""

    fields: FactCollector = field(default_factory=FactCollector)
    modes: dict[tuple[str, str], tuple[float, Evidence]] = field(
        default_factory=dict
    )  # the fastest mode, by device and list
    device: str = _UNNAMED
    typed: str = ""  # the last device whose type was read
    listed: str = ""  # the field of the current list of link modes, which has several lines
    names: set[str] = field(default_factory=set)  # of the lines of ethtool about this device
    driver: str = ""
    file_device: str = ""  # the device in the file name of an ethtool -i output


def read(part: Part) -> Iterator[Record]:
    """Network devices, and their counters in `ip -s`."""
    named = _ETHTOOL_FILE.search(part.file)
    reading, counted = _Reading(file_device=named[1] if named else ""), ""
    for number, line in part.lines():
        if counted and reading.device:
            reading.fields.add(Net, reading.device, part.cite(number, line))
            yield from _counters(part, number, line, reading.device, counted)
        counts = _COUNTS.fullmatch(line)
        counted = f"{counts['direction'].lower()} {counts['names']}" if counts else ""
        if not counts:
            _read_line(reading, line, part.cite(number, line))
    if reading.listed:  # more lines of the last list may be missing
        reading.modes.pop((reading.device, reading.listed), None)
    for (device, name), (speed, where) in reading.modes.items():
        reading.fields.add(Net, device, where, **{name: speed})
    yield from reading.fields.records()


def _read_line(reading: _Reading, line: str, where: Evidence) -> None:
    if settings := _SETTINGS.fullmatch(line):
        reading.device, reading.names = settings["name"], set()
        reading.fields.add(Net, reading.device, where)
    elif device := _DEVICE.match(line):
        reading.device = device["name"]
        known = [flag for flag in device["flags"].split(",") if flag]
        found_flags = flags(reading.fields, reading.device, known, where)
        reading.fields.add(Net, reading.device, where, mtu=int(device["mtu"]), **found_flags)
    elif found := _FIELD.fullmatch(line.strip()):
        reading.listed = _LISTS.get(found["name"], "")
        _field(reading, found["name"], found["value"], where)
    elif reading.device and (kind := _TYPE.match(line)):
        if reading.typed == reading.device:  # the line of the next device is missing
            reading.device = _UNNAMED
        reading.typed = reading.device
        reading.fields.add(Net, reading.device, where, link_type=TYPES.get(kind["type"]))
    if reading.listed and reading.device:
        _fastest(reading, line, where)


def _field(reading: _Reading, name: str, value: str, where: Evidence) -> None:
    """Add a line of ethtool. With -i it names the PCI function but not the network device."""
    if name == "driver":
        reading.driver, reading.device = value, ""
    elif name == "bus-info" and reading.driver and _ADDRESS.fullmatch(value):
        reading.fields.add(Pci, value, where, driver=reading.driver)
        if reading.file_device:
            reading.fields.add(Net, reading.file_device, where, address=value, driver=reading.driver)
    elif reading.device:
        if name in reading.names and name in _ONCE:  # the heading of another output is missing
            reading.device, reading.names = _UNNAMED, set()
        reading.names.add(name)
        reading.fields.add(Net, reading.device, where, **_value(name, value))


def flags(fields: FactCollector, device: str, known: Collection[str], where: Evidence) -> dict[str, Any]:
    """The fields from a device's flags. `carrier` is None for a disabled device, whose flags do not show the cable.

    A word that is no flag can be any flag that is not there.
    """
    damaged = next((flag for flag in known if flag not in _FLAGS), None)
    if damaged is not None:
        why = f"{shown(damaged)} is no flag of a device"
        fields.not_checked.append(
            NotChecked(what="Net.carrier", subject=device, reason=Reason.UNREADABLE, path=where.source, detail=why)
        )
    absent = False if damaged is None else None
    enabled, carrier = ("UP" in known) or absent, ("LOWER_UP" in known) or absent
    return {"enabled": enabled, "carrier": carrier if enabled else None}


def _value(name: str, value: str) -> Mapping[str, Any]:
    """The field of an ethtool line; none for "Unknown!"."""
    if name == "Speed" and (speed := _SPEED.fullmatch(value)):
        return {"speed": from_megabits(int(speed[1])) or None}
    if name == "Duplex" and value in ("Full", "Half"):
        return {"duplex": value.lower()}
    if name == "Link detected" and value.startswith(("yes", "no")):
        return {"carrier": value.startswith("yes")}
    return {}


def _fastest(reading: _Reading, line: str, where: Evidence) -> None:
    """Keep the fastest mode of a list such as "100000baseCR4/Full"."""
    place = reading.device, reading.listed
    for mode in _MODE.findall(line):
        speed = from_megabits(int(mode))
        if place not in reading.modes or speed > reading.modes[place][0]:
            reading.modes[place] = speed, where


def _counters(part: Part, number: int, line: str, name: str, counted: str) -> Iterator[Observation]:
    """The counters on the line after a heading such as "RX: bytes packets errors"."""
    direction, *names = counted.split()
    cells = line.split()
    if len(cells) != len(names) or not all(re.fullmatch("[0-9]{1,20}", cell) for cell in cells):
        return
    for what, cell in zip(names, cells, strict=True):
        if what in _STORED:
            yield Observation(
                about=name,
                quantity=f"{direction}_{what}",
                unit=_STORED[what],
                value=float(cell),
                at=part.at,
                evidence=part.cite(number, line),
            )
