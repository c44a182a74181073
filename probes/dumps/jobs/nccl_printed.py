"""The rates of links in NCCL's printed graph, with or without its first line: "+ PCI[48.0] - GPU/0-54000 (0)".

A number is what NCCL counts for a link (src/graph/topo.cc), not a measurement. Only numbers that differ are stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.network_paths import LINK_RATE
from ....models.facts.records import Observation
from ....models.facts.units import from_gigabytes
from ..core.part import Part

_PRINTED = re.compile(
    r"\+ (?P<link>PCI|NET)\[ ?(?P<rate>\d{1,4}(?:\.\d{1,6})?)\] - (?P<kind>GPU|NIC|NET)/"
    r"(?P<id>[0-9A-Fa-f-]{1,24})(?![\w-])"
)


def rates(part: Part) -> Iterator[Observation]:
    """The first number of each GPU, NIC and network, if those of one kind differ."""
    found: dict[str, dict[str, Observation]] = {}
    for number, line in part.lines():
        for one in _PRINTED.finditer(line):
            kind = f"{one['link']} {one['kind']}"
            key = f"{one['kind']}/{one['id']}"
            seen = Observation(
                about=key,
                quantity=LINK_RATE,
                unit="bytes_per_second",
                value=from_gigabytes(float(one["rate"])),
                at=part.at,
                evidence=part.cite(number, line),
            )
            found.setdefault(kind, {}).setdefault(key, seen)
    for several in found.values():
        if len({one.value for one in several.values()}) > 1:
            yield from several.values()
