"""Vendor and device names from the system's pci.ids (the head of that file describes the format)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...models.facts.machine import Pci
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable

_LEGAL = r",| (?=Inc|Corp|Tech|Electronics|Co\b|Ltd|Limited|Semi|GmbH|/|\[)"  # suffixes of vendor names
# The product in brackets follows the chip's name; the file of 2023 has "GH100[H100 SXM5 80GB]".
_PRODUCT = r"(?: |(?=\[[A-Z]+[0-9]))\[([^\[\]]+)\]$"
FILES = ("usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "usr/share/pci.ids")


def read_names(host: Host, functions: Iterable[Pci]) -> Iterator[Record]:
    """Yield a `Pci` with the name of each function that pci.ids contains."""
    text = None
    for path in FILES:
        try:
            text = host.read(path)
        except Unreadable:
            continue  # another copy may be readable; else the NotChecked below reports it
        if text is not None:
            break
    if text is None:
        why = "no pci.ids on this machine: device names are unknown"
        yield NotChecked(
            what="Pci.name",
            subject="node",
            reason=Reason.NOT_INSTALLED,
            detail=why,
            how="install the package pci.ids (or hwdata)",
        )
        return
    sections: dict[int, str] = {}
    for function in functions:
        if function.vendor is None or function.device is None:
            continue
        if function.vendor not in sections:
            sections[function.vendor] = section(text, function.vendor)
        if name := _name(sections[function.vendor], function.device):
            yield Pci(key=function.key, name=name)


def section(text: str, vendor: int) -> str:
    """Return the lines of a vendor and its devices; empty if the file does not contain the vendor."""
    start = text.find(f"\n{vendor:04x}  ") + 1
    if not start:
        return ""
    end = start
    while True:
        end = text.find("\n", end) + 1
        if not end:
            return text[start:]
        if text[end : end + 1] not in ("\t", "#", "\n"):
            return text[start:end]


def _name(lines: str, device: int) -> str | None:
    """Return the common name of a product: "NVIDIA H100 SXM5 80GB" for "GH100 [H100 SXM5 80GB]"."""
    start = lines.find(f"\n\t{device:04x}  ")
    if start < 0:
        return None
    maker = re.split(_LEGAL, lines.partition("\n")[0][6:].strip())[0]
    text = lines[start + 8 :].partition("\n")[0].strip()
    product = re.search(_PRODUCT, text)
    name = product[1] if product else text
    return name if name.startswith(maker) and name else f"{maker} {name}".strip() or None
