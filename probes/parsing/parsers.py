"""Parsers for single values of sysfs and procfs. Each raises ValueError with a sentence that says what is wrong."""

from __future__ import annotations

import re

from ...models.facts.pcie_rates import WIDTHS, generation

PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")  # domain:bus:device.function
_SPEED = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,2})?) GT/s(?: PCIe)?")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LOST_WIDTHS = (63, 255)  # all bits of the field set: the read failed


def decimal(text: str) -> int:
    """ "42" """
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a number")
    return int(text)


def count(text: str) -> int:
    """ "42", not negative."""
    if (number := decimal(text)) < 0:
        raise ValueError(f"{shown(text)} is negative")
    return number


def known(text: str) -> int | None:
    """ "42". None for a negative number, which means unknown."""
    return None if (number := decimal(text)) < 0 else number


def hexadecimal(text: str) -> int:
    """ "0x10de" """
    if not _HEXADECIMAL.fullmatch(text):
        raise ValueError(f"{shown(text)} is not a hexadecimal number")
    return int(text, 16)


def flag(text: str) -> bool:
    """ "0" or "1" """
    if text not in ("0", "1"):
        raise ValueError(f"{shown(text)} is neither 0 nor 1")
    return text == "1"


def word(text: str) -> str | None:
    """One printable line. None if it is empty."""
    if not text.isprintable():
        raise ValueError(f"{shown(text)} is not a line of text")
    return text.strip() or None


def cpu_list(text: str) -> tuple[int, ...]:
    """ "0-3,8,10-11", ascending. "" gives no CPUs. Kernel documentation, admin-guide/cputopology.

    Linux 2.6.32 appends a zero byte.
    """
    cpus: list[int] = []
    for part in filter(None, text.rstrip("\n\0").split(",")):
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if first > last or (cpus and first <= cpus[-1]):
            raise ValueError(f"{shown(text)} is not a list of CPUs")
        cpus += range(first, last + 1)
    return tuple(cpus)


def pcie_speed(text: str) -> float | None:
    """ "32.0 GT/s PCIe" or "8 GT/s" as transfers per second and lane. None for "Unknown" (lost, or no link)."""
    if text.startswith("Unknown"):
        return None
    match = _SPEED.fullmatch(text)
    speed = float(match[1]) * 1e9 if match else 0.0
    if generation(speed) is None:
        raise ValueError(f"{shown(text)} is not a PCIe speed")
    return speed


def pcie_width(text: str) -> int | None:
    """The number of lanes. None for 0 (no link) and for 63 and 255 (the device does not answer)."""
    lanes = count(text)
    if lanes in (0, *_LOST_WIDTHS):
        return None
    if lanes not in WIDTHS:
        raise ValueError(f"{shown(text)} is not a number of lanes")
    return lanes


def is_lost(speed: str | None, width: str | None) -> bool:
    """Whether current_link_speed and current_link_width show a device that does not answer any more."""
    return (speed or "").startswith("Unknown") and width in ("63", "255")


def shown(text: str, most: int = 40) -> str:
    """A text from outside for use in a message: quoted, printable, at most `most` characters and "..."."""
    cut = text if len(text) <= most else f"{text[:most]}..."
    return ascii(cut)
