"""How much of a GPU's memory its peers can reach: the window (BAR) that it lies in, from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.machine import Pci
from ...models.facts.records import Record
from ..host.host import Host
from ..parsing.parsers import hexadecimal, shown
from ..sysfs.fact_reader import FactReader
from .bound_devices import NVIDIA, gpus

_WIDE, _UNSET = 0x0010_0000, 0x2000_0000  # IORESOURCE_MEM_64, IORESOURCE_UNSET of include/linux/ioport.h
_SMALLEST = 20  # bit 0 of the sizes stands for 1 MiB


def read_pci_windows(host: Host) -> Iterator[Record]:
    """The second memory window of each NVIDIA GPU, and the largest that it could be: registers are in the first."""
    for address in gpus(host, NVIDIA):
        reading = FactReader(host, Pci, address, f"sys/bus/pci/devices/{address}")
        reading.take("bar1", "resource", second_window)
        reading.take("bar1_max", f"resource{_second(reading.text('bar1') or '')}_resize", largest)
        yield from reading.records()


def second_window(text: str) -> int | None:
    """Bytes, from the table of start, end and flags; 0: not assigned. None where the table is empty (a sandbox)."""
    windows = [tuple(map(hexadecimal, line.split(" "))) for line in text.splitlines()]
    if len(windows) <= 2 or any(len(window) != 3 for window in windows):
        raise ValueError(f"{shown(text)} is not a table of windows")
    if not any(flags for _, _, flags in windows):
        return None
    start, end, flags = windows[_second(text)]
    return end - start + 1 if flags and not flags & _UNSET and end > start else 0


def _second(text: str) -> int:
    """The number of the second window: one of 64 bits takes two places."""
    return 2 if int(text.partition("\n")[0].rpartition(" ")[2] or "0", 16) & _WIDE else 1


def largest(text: str) -> int | None:
    """The largest of a bit map of sizes (ABI/testing/sysfs-bus-pci, resourceN_resize); None where it has none."""
    if not re.fullmatch("[0-9a-f]{1,16}", text):
        raise ValueError(f"{shown(text)} is not a bit map of sizes")
    sizes = int(text, 16)
    return 1 << sizes.bit_length() - 1 + _SMALLEST if sizes else None
