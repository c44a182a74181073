"""The size of a GPU's memory window (BAR1) from the lines that the kernel logs when it finds and places PCI functions.

Linux drivers/pci/probe.c (pci_setup_device, __pci_read_base) and setup-res.c: "reg 0x14: [mem ...]" before Linux 6.9,
then "BAR 1 [mem ...]". A function without Resizable BAR has the same size in all lines. The last line counts: the
kernel or a driver can make the window larger.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ....models.facts.machine import Pci
from ....models.facts.pci_classes import NVIDIA, kind_of
from ....models.facts.records import Evidence, Record
from ..core.part import Part

_A = r"(?<![\w:])(?P<address>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_NEEDLES = (" type 00 class 0x03", ": BAR 1", ": reg 0x14:", ": reg 14:")
_FUNCTION = re.compile(
    rf"{_A}: \[(?P<vendor>[0-9a-f]{{4}}):(?P<device>[0-9a-f]{{4}})\] type 00 class (?P<code>0x[0-9a-f]{{6}})"
)
_WINDOW = re.compile(
    rf"{_A}: (?:BAR 1:?|reg (?:0x)?14:) (?:assigned |\(?)?"
    r"\[?mem (?P<first>0x[0-9a-f]{6,16})-(?P<last>0x[0-9a-f]{6,16})(?= 64bit pref)"
)
_SMALL = 1 << 28  # bytes: the largest window without Resizable BAR, and with no addresses above 4 GB
_MOST = 1 << 44  # bytes: a larger window is a damaged number


def read_boot_windows(part: Part) -> Iterator[Record]:
    """A `Pci` for each NVIDIA GPU whose window is logged, if some window is small. A log in which all are large shows
    nothing else about the GPUs: it is no reason to call them healthy.
    """
    gpus: dict[str, Pci] = {}
    windows: dict[str, tuple[int, Evidence]] = {}
    for number, line in part.lines_with(_NEEDLES):
        if len(line) > 2000:
            continue
        if found := _FUNCTION.search(line):
            address, vendor, device, code = found.groups()
            cites = dict.fromkeys(("pci_class", "vendor", "device"), part.cite(number, line))
            one = Pci(key=address, pci_class=int(code, 16), vendor=int(vendor, 16), device=int(device, 16), cites=cites)
            if one.vendor == NVIDIA and kind_of(one) == "gpu":
                gpus[address] = one
        elif (found := _WINDOW.search(line)) and (size := _size(found)):
            windows[found["address"]] = size, part.cite(number, line)
    shown = [address for address in gpus if address in windows]
    if any(windows[address][0] <= _SMALL for address in shown):
        yield from (_with_window(gpus[address], *windows[address]) for address in shown)


def _with_window(gpu: Pci, size: int, cite: Evidence) -> Pci:
    return replace(gpu, bar1=size, cites={**gpu.cites, "bar1": cite})


def _size(found: re.Match[str]) -> int | None:
    """The bytes of a window: a power of two. None: a damaged number."""
    size = int(found["last"], 16) - int(found["first"], 16) + 1
    return size if 0 < size <= _MOST and size & (size - 1) == 0 else None
