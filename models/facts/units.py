"""Units, and all conversions between them. Inside the program a rate is bytes per second in one direction."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import lru_cache
from math import floor
from typing import NewType

BytesPerSecond = NewType("BytesPerSecond", float)

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_PREFIXES = {0: ("",), 1: ("k", "K"), 2: ("M",), 3: ("G",), 4: ("T",)}
_UTC = "%Y-%m-%dT%H:%M:%SZ"


def from_gigabytes(rate: float) -> BytesPerSecond:
    """GB/s (10⁹ bytes) as bytes per second."""
    return BytesPerSecond(rate * 1e9)


def from_megabytes(rate: float) -> BytesPerSecond:
    """MB/s (10⁶ bytes), the unit of STREAM, as bytes per second."""
    return BytesPerSecond(rate * 1e6)


def from_bits(rate: float) -> BytesPerSecond:
    """Bit/s, the unit of network benchmarks, as bytes per second."""
    return BytesPerSecond(rate / 8)


def from_megabits(rate: float) -> BytesPerSecond:
    """Mbit/s, the kernel's unit for Ethernet, as bytes per second."""
    return BytesPerSecond(rate * 1e6 / 8)


def from_gigabits(rate: float) -> BytesPerSecond:
    """Gbit/s, the kernel's unit for InfiniBand, as bytes per second."""
    return BytesPerSecond(rate * 1e9 / 8)


def prefixed(unit: str, base: float = 1.0, step: int = 1000) -> dict[str, float]:
    """A unit with each prefix: {"B": 1, "kB": 1000, "KB": 1000, "MB": 1e6, ...}. `base`: what one such unit is."""
    return {f"{sign}{unit}": base * float(step**power) for power, signs in _PREFIXES.items() for sign in signs}


def as_gigabytes(rate: float) -> str:
    """Bytes per second as text: "55.4 GB/s", "1.25 GB/s", "0.013 GB/s"."""
    gigabytes = rate / 1e9
    digits = 1 if gigabytes >= 10 else 2 if gigabytes >= 0.1 else 3
    return f"{gigabytes:.{digits}f} GB/s"


def as_gigabits(rate: float) -> str:
    """Bytes per second as text in the unit of networks: "400 Gb/s", "2.5 Gb/s"."""
    return f"{rate * 8 / 1e9:g} Gb/s"


def as_transfers(speed: float) -> str:
    """Transfers per second as text: "32 GT/s", "2.5 GT/s"."""
    return f"{speed / 1e9:g} GT/s"


def as_megahertz(clock: float) -> str:
    """Hertz as text: "1,980 MHz"."""
    return f"{clock / 1e6:,.0f} MHz"


def as_bytes(size: float) -> str:
    """A capacity in powers of ten, as on a data sheet: "1.92 TB", "512 GB", "0 B"."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 999.5 * factor else f"{size / factor:.0f} {unit}"
    return f"{size:.0f} B"


def as_utc(seconds: float) -> str:
    """Seconds since 1970 as "2026-11-21T03:00:00Z"."""
    return _as_utc(floor(seconds))


@lru_cache(maxsize=64)  # thousands of observations share a few times
def _as_utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime(_UTC)


def from_utc(text: str) -> float:
    """ "2026-11-21T03:00:00Z" as seconds since 1970."""
    return datetime.strptime(text, _UTC).replace(tzinfo=timezone.utc).timestamp()


def as_size(size: int) -> str:
    """ "64 MiB" for a multiple of a binary unit, else powers of ten. "64 MB" stays so, although it is 62500 KiB."""
    units = (("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
    fitting = (f"{size // factor} {unit}" for unit, factor in units if size % factor == 0 and size < 10_000 * factor)
    return next(fitting, as_bytes(size))
