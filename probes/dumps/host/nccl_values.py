"""Attribute values in NCCL's topology files. The parsers raise ValueError with a reason."""

from __future__ import annotations

import re

from ....models.facts.units import from_megabits
from ...parsing.parsers import decimal, hexadecimal, pcie_speed, pcie_width, shown

_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_NOWHERE = 0xFFFF  # vendor and device of an absent device, as in switches of files written by hand


def pci_address(text: str) -> str:
    """The address in the kernel's form. NVML writes eight hex digits for the domain, in capitals."""
    found = _ADDRESS.fullmatch(text.lower())
    if not found:
        raise ValueError(f"{shown(text)} is not a PCI address")
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}"


def link_speed(text: str) -> float | None:
    """The speed of "32 GT/s", "32.0 GT/s PCIe", "32 GT/s PCIe/s". NCCL compares only the beginning. "" is unknown."""
    return pcie_speed(re.sub(r"(GT/s).*", r"\1", text)) if text else None


def link_width(text: str) -> int | None:
    """Number of lanes. 0 and "" are unknown."""
    return pcie_width(text) if text else None


def pci_class(text: str) -> int:
    """ "0x030200" as a number. NCCL writes "0x03" if it knows only the base class."""
    hexadecimal(text)
    return int(text[2:8].ljust(6, "0"), 16)


def pci_id(text: str) -> int | None:
    """A vendor or device number. 0xffff means no device."""
    return None if (number := hexadecimal(text)) == _NOWHERE else number


def printable(text: str) -> str | None:
    """A name. "" is unknown."""
    if not text.isprintable():
        raise ValueError(f"{shown(text)} is not a name")
    return text.strip() or None


def cpu_mask(text: str) -> tuple[int, ...]:
    """The CPUs of a mask such as "0000ffff,00000000", the cpumap format of sysfs: groups of 32 CPUs, lowest
    group last.
    """
    if not re.fullmatch(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{1,8}){0,255}", text):
        raise ValueError(f"{shown(text)} is not a mask of CPUs")
    groups = [int(group, 16) for group in reversed(text.split(","))]
    return tuple(32 * n + bit for n, group in enumerate(groups) for bit in range(32) if group >> bit & 1)


def port_rate(text: str, guessed: int | None = None) -> float | None:
    """A rate in Mb/s as bytes per second. Values that are not positive are unknown."""
    speed = decimal(text)
    return from_megabits(speed) if speed > 0 and speed != guessed else None
