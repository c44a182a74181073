"""Size of the PCI memory window (BAR) through which peers access a GPU's memory, from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.machine import Pci
from ...models.facts.records import Record
from ..host.host import Host
from ..parsing.parsers import hexadecimal, shown
from ..sysfs.fact_reader import FactReader
from .bound_devices import NVIDIA, gpus
from .links import DEVICES
from .power import is_asleep

_WIDE, _UNSET = 0x0010_0000, 0x2000_0000  # IORESOURCE_MEM_64, IORESOURCE_UNSET of include/linux/ioport.h
_SMALLEST = 20  # bit 0 of the sizes means 1 MiB


def read_pci_windows(host: Host) -> Iterator[Record]:
    """Yield the size and the largest possible size of each NVIDIA GPU's second window. The first contains registers."""
    for address in gpus(host, NVIDIA):
        reading = FactReader(host, Pci, address, f"{DEVICES}/{address}")
        reading.take("bar1", "resource", second_window)
        if not is_asleep(host, f"{DEVICES}/{address}"):
            reading.take("bar1_max", f"resource{_second(reading.text('bar1') or '')}_resize", largest)
        yield from reading.records()


def second_window(text: str) -> int | None:
    """Return the bytes of the second window in a table of start, end and flags.

    0 means not assigned. None means an empty table (in a sandbox).
    """
    windows = [tuple(map(hexadecimal, line.split(" "))) for line in text.splitlines()]
    if len(windows) <= 2 or any(len(window) != 3 for window in windows):
        raise ValueError(f"{shown(text)} is not a table of windows")
    if not any(flags for _, _, flags in windows):
        return None
    start, end, flags = windows[_second(text)]
    return end - start + 1 if flags and not flags & _UNSET and end > start else 0


def _second(text: str) -> int:
    """Return the number of the second window. A 64-bit first window occupies two numbers."""
    return 2 if int(text.partition("\n")[0].rpartition(" ")[2] or "0", 16) & _WIDE else 1


def largest(text: str) -> int | None:
    """Return the largest size, in bytes, of a bit map (ABI/testing/sysfs-bus-pci, resourceN_resize); None if empty."""
    if not re.fullmatch("[0-9a-f]{1,16}", text):
        raise ValueError(f"{shown(text)} is not a bit map of sizes")
    sizes = int(text, 16)
    return 1 << sizes.bit_length() - 1 + _SMALLEST if sizes else None
