"""The data rate of a PCIe link, from its generation and width.

**Rated** is the line rate minus its encoding: 8b/10b for 2.5 and 5 GT/s, 128b/130b for 8 to 32 GT/s (PCI Express Base
Specification 5.0, 4.2.1 and 4.2.2). 64 and 128 GT/s use flits of 256 bytes; 242 of them carry packets (6.0, 4.2.3;
hwloc's private/misc.h has the same 242/256). models/bandwidth/efficiency.py has the share that a copy reaches.
"""

from __future__ import annotations

from .units import BytesPerSecond

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_SPEEDS = (2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9)  # transfers per second and lane, one bit each per direction


def generation(speed: float) -> int | None:
    """The PCIe generation, 1 to 7, of a speed in transfers per second; None for any other speed."""
    return _SPEEDS.index(speed) + 1 if speed in _SPEEDS else None


def speed_of(generation: int) -> float:
    """Transfers per second and lane of a generation from 1 to 7. IndexError for any other."""
    return _SPEEDS[generation - 1] if generation > 0 else _SPEEDS[len(_SPEEDS)]


def rated(speed: float, width: int) -> BytesPerSecond:
    """Bytes per second in one direction of a link at `speed` transfers per second and `width` lanes."""
    encoding = 8 / 10 if speed < 8e9 else 128 / 130 if speed < 64e9 else 242 / 256
    return BytesPerSecond(speed * width * encoding / 8)
