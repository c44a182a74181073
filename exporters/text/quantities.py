"""Values of findings with their units, and lines of evidence."""

from __future__ import annotations

import re

from ...models.facts.records import Evidence
from ...models.facts.units import as_bytes, as_gigabytes, as_megahertz, as_transfers

_ABOVE = re.compile(r"^sys/devices/\S*/(?=[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/)")  # bridges above a device
_UNITS = {
    "bytes_per_second": as_gigabytes,
    "transfers_per_second": as_transfers,
    "bytes": as_bytes,
    "hertz": as_megahertz,
}
_COUNTED = {  # units of counts, for one and for several
    "gpus": ("GPU", "GPUs"),
    "CPUs": ("CPU", "CPUs"),
    "devices": ("device", "devices"),
    "lanes": ("lane", "lanes"),
    "links": ("link", "links"),
    "switches": ("switch", "switches"),
}
_SEPARATE = 10_000  # numbers from here on have separators: 12,345


def quantity(value: float | str | None, unit: str | None) -> str:
    """A value of a finding with its unit: "63.0 GB/s"; "" for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if unit in _UNITS:
        return _UNITS[unit](value)
    number = f"{value:,.0f}" if abs(value) >= _SEPARATE else f"{value:g}"
    if unit in _COUNTED:
        return f"{number} {_COUNTED[unit][value != 1]}"
    return f"{number} {unit.replace('_', ' ')}" if unit and unit != "count" else number


def seen(evidence: Evidence) -> str:
    """The source of the evidence, without the PCI bridges above the device, and its text."""
    return f"{_ABOVE.sub('', evidence.source)}: {evidence.text or '(empty)'}"
