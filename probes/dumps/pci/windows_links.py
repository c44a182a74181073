"""PCIe links in texts from Windows: properties of devices in PowerShell (Get-PnpDeviceProperty,
Get-NetAdapterHardwareInfo), tables of them, and the bus interface in GPU-Z and HWiNFO.

The properties have no address. The key of the function is the place of the line; a name that comes again is of the next
function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ....models.facts.machine import Pci
from ....models.facts.pcie_rates import generation, speed_of
from ....models.facts.records import Evidence, Record
from ...parsing.parsers import pcie_width
from ..core.part import Part
from ..core.pci_words import identity

_OWNER = r"(?:DEVPKEY_PciDevice_|\{[0-9A-Fa-f-]{36}\}[ \t]*|PciExpress|PCIe|Pcie|Pci)?"
_NAME = rf"{_OWNER}(?:Current|Max|Maximum)Link(?:Width|Speed)(?:Encoded)?"
_IS = r"[ \t]{0,60}(?:[:=][ \t]{0,60}|(?<=[ \t]))(?:(?:U?Int32|Byte)[ \t]{1,60})?"
_VALUE = r"(?:x?[0-9]{1,2}|[0-9]{1,2}(?:\.[0-9])?[ ]?GT/s|Gen[ ]?[1-7])"
_BUS = r"PCIe?[ ](?:v[1-7]\.[0-9][ ])?x[ ]?[0-9]{1,2}[ ](?:[1-7]\.[0-9][ ]|\([0-9.]{1,4}[ ]GT/s\)[ ])?@[ ]x[ ]?[0-9]"
_WIDTHS = r"CurrentLinkWidth[^\n0-9:=]{1,100}MaxLinkWidth|MaxLinkWidth[^\n0-9:=]{1,100}CurrentLinkWidth"
BEGIN = (
    rf"^[ \t]*(?:{_NAME}{_IS}{_VALUE}[ \t]*$"
    rf"|[^\n0-9:=]{{0,200}}?(?:{_WIDTHS})[^\n0-9:=]{{0,200}}$|[^\n]{{0,80}}?{_BUS})"
)
_PROPERTY = re.compile(
    rf"[ \t]*{_OWNER}(?P<mark>Current|Max)(?:imum)?Link(?P<what>Width|Speed)(?:Encoded)?"
    rf"{_IS}(?P<value>{_VALUE})[ \t]*"
)
_INTERFACE = re.compile(
    r"PCIe?[ ](?:v(?P<v>[1-7])\.[0-9][ ])?x[ ]?(?P<most>[0-9]{1,2})[ ]"
    r"(?:(?P<m>[1-7])\.[0-9][ ]|\([0-9.]{1,4}[ ]GT/s\)[ ])?"
    r"@[ ]x[ ]?(?P<width>[0-9]{1,2})(?![0-9.])(?:[ ](?P<n>[1-7])\.[0-9])?"
)
_COLUMN = re.compile(rf"{_OWNER}(?P<mark>Current|Max)(?:imum)?Link(?P<what>Width|Speed)(?:Encoded)?")
_FIELDS = {
    ("Current", "Width"): "width",
    ("Max", "Width"): "max_width",
    ("Current", "Speed"): "speed",
    ("Max", "Speed"): "max_speed",
}


def read(part: Part) -> Iterator[Record]:
    """A `Pci` for each link."""
    key, fields, cites = "", dict[str, Any](), dict[str, Evidence]()
    columns: Sequence[str] = ()
    for number, line in part.lines():
        cite = part.cite(number, line)
        if len(line) < 500 and _INTERFACE.search(line):
            for count, shown in enumerate(_INTERFACE.finditer(line)):
                yield _of_interface(shown, part.where(number) + "'" * count, cite)
        elif found := _PROPERTY.fullmatch(line):
            name, value = _FIELDS[found["mark"], found["what"]], _parsed(found["what"], found["value"])
            if name in fields:
                yield Pci(key=key, cites=cites, **fields)
                fields, cites = {}, {}
            key = key if fields else part.where(number)
            if value is not None:
                fields[name], cites[name] = value, cite
        elif len(line) < 500 and len(heading := re.split(r"[ \t,|]+", line.strip(" \t|"))) > 1:
            columns = heading if any(map(_COLUMN.fullmatch, heading)) else columns
            if columns is not heading and (row := _of_row(columns, line)):
                yield Pci(key=part.where(number), cites=dict.fromkeys(row, cite), **row)
    if fields:
        yield Pci(key=key, cites=cites, **fields)


def _of_row(columns: Sequence[str], line: str) -> dict[str, Any]:
    """The fields of a row. The name of the device is the only cell with blanks, and the first one."""
    text = line.strip(" \t|")
    cells = re.split(r"[ \t]*[,|\t][ \t]*|[ ]{2,}", text)
    if len(cells) == 1 and columns:  # the runs of blanks between the columns are lost
        words = text.rsplit(maxsplit=len(columns) - 1)
        cells = words if all(re.fullmatch(_VALUE, word) for word in words[1:]) else cells
    if not columns or len(cells) != len(columns):
        return {}
    found: dict[str, Any] = {}
    for column, cell in zip(columns, cells, strict=True):
        if (known := _COLUMN.fullmatch(column)) and re.fullmatch(_VALUE, cell):
            value = _parsed(known["what"], cell)
            found |= {} if value is None else {_FIELDS[known["mark"], known["what"]]: value}
    return found | _named(cells[0]) if found else found


def _named(text: str) -> dict[str, Any]:
    """The class, vendor and name of "NVIDIA GeForce RTX 4090"."""
    gpu = re.match(r"(?:NVIDIA (?!ConnectX)|AMD Radeon|AMD Instinct)", text)
    if gpu is None:
        return {}
    begin = "NVIDIA Corporation" if text.startswith("NVIDIA") else "Advanced Micro Devices, Inc. [AMD/ATI]"
    vendor, device, _ = identity(f"{begin} [{text.partition(' ')[2]}]")
    return {"pci_class": 0x030000, "vendor": vendor, "name": text, **({"device": device} if device else {})}


def _of_interface(found: re.Match[str], key: str, cite: Evidence) -> Pci:
    most, now = found["m"] or found["v"], found["n"]
    values = {
        "width": _parsed("Width", found["width"]),
        "max_width": _parsed("Width", found["most"]),
        "speed": speed_of(int(now)) if now else None,
        "max_speed": speed_of(int(most)) if most else None,
    }
    known: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    return Pci(key=key, cites=dict.fromkeys(known, cite), **known)


def _parsed(what: str, text: str) -> float | None:
    """Lanes, or the speed of "16.0 GT/s", "Gen 4" or 4: Windows numbers the speeds as PCIe does."""
    digits = re.search(r"[0-9]{1,2}(?:\.[0-9])?", text)
    if digits is None:
        return None
    if what == "Width":
        try:
            return pcie_width(digits[0]) or None
        except ValueError:
            return None
    speed = float(digits[0]) * 1e9 if "GT" in text else speed_of(int(digits[0])) if int(digits[0]) in range(1, 8) else 0
    return speed if generation(speed) is not None else None
