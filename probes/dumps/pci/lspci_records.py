"""lspci -mm and -vmm of pciutils: machine-readable formats (lspci(8), Machine readable output)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.facts.machine import Pci
from ....models.facts.pci_classes import NVIDIA, kind_of
from ....models.facts.records import Record
from ..core.part import Part
from ..core.pci_words import class_of, identity
from .drivers import DRIVER, GPU_DRIVERS
from .lspci import full_address

_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_QUOTED = r'"(?:[^"\\\n]|\\.){0,200}"'
_SLOT = r"[ \t]*(?:Slot|Device):[ \t]{1,16}"
BEGIN = rf"^(?:{_SLOT}{_ADDRESS}[ \t]*\n[ \t]*Class:[ \t]|[ \t]*{_ADDRESS} {_QUOTED} {_QUOTED} {_QUOTED})"
_RECORD = re.compile(
    rf"^{_SLOT}({_ADDRESS})[ \t]*((?:\n[ \t]*(?!Slot:)[A-Z]\w{{1,15}}:[ \t][^\n]*){{1,30}})",
    re.MULTILINE,
)
_ENTRY = re.compile(r"^[ \t]*([A-Z]\w{1,15}):[ \t]+([^\n]*)", re.MULTILINE)
_ROW = re.compile(rf"^[ \t]*({_ADDRESS}) ({_QUOTED}) ({_QUOTED}) ({_QUOTED})", re.MULTILINE)
_BARE = re.compile(r"[0-9a-f]{4}")


def read(part: Part) -> Iterator[Record]:
    """A `Pci` per function with its names and numbers."""
    for line, found in part.matches(_RECORD):
        entries = dict(_ENTRY.findall(found[2]))
        texts = entries.get("Class", ""), entries.get("Vendor", ""), entries.get("Device", "")
        numa, driver = entries.get("NUMANode", ""), entries.get("Driver", "")
        more: dict[str, Any] = {
            "driver": driver if DRIVER.fullmatch(driver) else None,
            "numa": int(numa) if re.fullmatch("[0-9]{1,4}", numa) else None,
        }
        yield _function(part, line, found, texts, more)
    for line, found in part.matches(_ROW):
        yield _function(part, line, found, (found[2][1:-1], found[3][1:-1], found[4][1:-1]), {})


def _function(part: Part, line: int, found: re.Match[str], texts: tuple[str, str, str], more: dict[str, Any]) -> Pci:
    (kind, code), (maker, vendor), (model, device) = (_split(text) for text in texts)
    _, _, name = identity(f"{maker} {model}".strip())
    by_name = identity(f"{maker} {model}".strip())[0]
    fields: dict[str, Any] = {
        "pci_class": code << 8 if code is not None else class_of(kind),
        "vendor": by_name if vendor is None else vendor,
        "device": device,
        "name": name,
        **more,
    }
    known = {field: value for field, value in fields.items() if value is not None}
    function = Pci(key="", pci_class=known.get("pci_class"), vendor=known.get("vendor"))
    if function.vendor == NVIDIA and kind_of(function) == "gpu" and known.get("driver") not in GPU_DRIVERS:
        known.pop("driver", None)
    return Pci(
        key=full_address(found[1]), cites=dict.fromkeys(known, part.cite(line, found[0].split("\n")[0])), **known
    )


def _split(text: str) -> tuple[str, int | None]:
    """A name and its number from "NVIDIA Corporation [10de]"; with -n only the number."""
    text = text.strip()
    if _BARE.fullmatch(text):
        return "", int(text, 16)
    head, bracket, end = text.rpartition("[")
    number = end.removesuffix("]")
    return (head.strip(), int(number, 16)) if bracket and _BARE.fullmatch(number) else (text, None)
