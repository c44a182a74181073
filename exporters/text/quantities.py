"""Values of findings with their units, lines of evidence, and rates of links."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...models.facts.records import Evidence
from ...models.facts.units import as_bytes, as_gigabits, as_gigabytes, as_megahertz, as_transfers
from ...models.graph.topology import Link
from .terminal import safe

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
_FLAGS = {"True": "yes", "False": "no"}  # values of a driver
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
    text = _FLAGS.get(evidence.text, evidence.text)
    return f"{_ABOVE.sub('', evidence.source)}: {text or '(empty)'}"


def rate_of(link: Link | None) -> str:
    """ "63.0 GB/s"; "31.5 of 63.0 GB/s" if it runs below its rated speed; for a port also in Gb/s."""
    if link is None or (link.rated is None and link.trained is None):
        return ""
    runs = link.trained if link.trained is not None else link.rated
    assert runs is not None
    text = as_gigabytes(runs)
    if is_slower(link):
        text = f"{text.removesuffix(' GB/s')} of {as_gigabytes(link.rated or 0)}"
    if link.rated_back is not None and link.rated_back != link.rated:
        text += f", back {as_gigabytes(link.rated_back)}"
    return f"{text} ({as_gigabits(runs)})" if link.kind == "port" else text


def is_slower(link: Link | None) -> bool:
    """Whether the link runs below its rated speed."""
    if link is None or link.rated is None or link.trained is None:
        return False
    return link.trained < link.rated * 0.999  # tolerance for rounding of equal generation and width


def bundle_of(links: Sequence[Link]) -> str:
    """Parallel links and their total rate: "17 of 18 x NVLink 425.0 of 450.0 GB/s"."""
    kind = {"nvlink": "NVLink", "xgmi": "xGMI", "c2c": "C2C"}.get(links[0].kind, safe(links[0].kind))
    up = [link for link in links if link.trained != 0]
    now = [link.trained if link.trained is not None else link.rated for link in up]
    able = [link.rated for link in links if link.rated is not None]
    few = len(up) < len(links)
    count = f"{len(up)} of {len(links)} x {kind}" if few else f"{len(links)} x {kind}" if len(links) > 1 else kind
    known = [rate for rate in now if rate is not None]
    if not known or len(known) < len(up):
        return count
    whole = as_gigabytes(sum(able))
    text = as_gigabytes(sum(known))
    return f"{count} {text.removesuffix(' GB/s')} of {whole}" if few and len(able) == len(links) else f"{count} {text}"
