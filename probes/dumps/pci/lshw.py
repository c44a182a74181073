"""`lshw`: the PCI functions of its blocks, whether a driver claims them, and the speeds of network devices.

A block begins with `*-display`, or `*-display UNCLAIMED` where no driver is bound (https://ezix.org/src/pkg/lshw,
src/core/print.cc). Its lines are `name: value`; `bus info` has the address and `configuration` the driver. Of a network
device, `size` is the speed and `capacity` the fastest mode (src/core/network.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.ethernet import ETHERNET_SPEEDS
from ....models.facts.machine import Net, Pci
from ....models.facts.pci_classes import AMD, MELLANOX, NVIDIA
from ....models.facts.records import Evidence, Record
from ....models.facts.units import from_gigabits, from_megabits
from ...parsing.nvml_enums import pci_address
from ..core.fields import FactCollector
from ..core.part import Part
from .drivers import DRIVER

_HEAD = r"[ \t>]*\*-(?P<kind>[a-z0-9][\w-]{1,20})(?::\d{1,3})?(?P<unclaimed>[ ]UNCLAIMED)?(?:[ ]DISABLED)?[ \t]*"
BEGIN = rf"^{_HEAD.replace('?P<kind>', '?:').replace('?P<unclaimed>', '?:')}\n[ \t>]+(?:description|product|vendor): "
_BLOCK = re.compile(_HEAD + "$")
_NAMES = "description|product|vendor|bus info|configuration|logical name|size|capacity"
_LINE = re.compile(rf"[ \t>]+(?P<name>{_NAMES}): (?P<value>\S.{{0,300}})")
_BUS = re.compile(r"pci@([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s*")
_BOUND = re.compile(rf"\bdriver=({DRIVER.pattern})")
_LINK = re.compile(r"\blink=(yes|no)\b")
_DUPLEX = re.compile(r"\bduplex=(half|full)\b")
_SPEED = re.compile(r"(?P<number>[0-9]{1,4}(?:\.[0-9])?)(?P<unit>[MG])bit/s\s*")
_VENDORS = {"NVIDIA": NVIDIA, "Mellanox": MELLANOX, "Advanced Micro Devices": AMD}
_CLASSES = {  # names of classes in pci.ids
    "VGA compatible controller": 0x030000,
    "3D controller": 0x030200,
    "Display controller": 0x038000,
    "Processing accelerators": 0x120000,
    "Infiniband controller": 0x020700,
}


def read(part: Part) -> Iterator[Record]:
    """A Pci per block with an address: class, vendor, name and driver ("": no driver claims it). A Net per network."""
    found = FactCollector()
    block: dict[str, tuple[str, Evidence]] = {}
    for number, line in part.lines():
        if head := _BLOCK.match(line):
            _add(found, block)
            block = {"head": (head["unclaimed"] or "", part.cite(number, line))}
        elif known := _LINE.match(line):
            block.setdefault(known["name"], (known["value"].strip(), part.cite(number, line)))
    _add(found, block)
    yield from found.records()


def _add(found: FactCollector, block: Mapping[str, tuple[str, Evidence]]) -> None:
    """Add the function of a block. A cut block without its head or its address has none."""
    address = _BUS.fullmatch(block["bus info"][0]) if "head" in block and "bus info" in block else None
    key = pci_address(address[1]) if address else None
    if key is None:
        return
    for name, (value, where) in block.items():
        found.add(Pci, key, where, **_fields(name, value))
    if block["head"][0] == "" and "logical name" in block:
        _add_port(found, block)


def _add_port(found: FactCollector, block: Mapping[str, tuple[str, Evidence]]) -> None:
    """Add the network device of a block, with its speeds and whether it has a link."""
    device, where = block["logical name"]
    for name, field in (("size", "speed"), ("capacity", "max_speed")):
        value, cite = block.get(name, ("", where))
        if speed := _SPEED.fullmatch(value):
            rate = (from_gigabits if speed["unit"] == "G" else from_megabits)(float(speed["number"]))
            if rate in ETHERNET_SPEEDS:
                found.add(Net, device, cite, **{field: rate})
    settings, cite = block.get("configuration", ("", where))
    if link := _LINK.search(settings):
        duplex = _DUPLEX.search(settings)
        found.add(Net, device, cite, carrier=link[1] == "yes", duplex=duplex[1] if duplex else None)


def _fields(name: str, value: str) -> dict[str, Any]:
    """The fields that a line of a block gives."""
    if name == "product":
        return {"name": value}
    if name == "description":
        return {"pci_class": _CLASSES.get(value)}
    if name == "vendor":
        return {"vendor": next((number for maker, number in _VENDORS.items() if value.startswith(maker)), None)}
    if name == "head":
        return {"driver": "" if value else None}
    bound = _BOUND.search(value) if name == "configuration" else None
    return {"driver": bound[1]} if bound else {}
