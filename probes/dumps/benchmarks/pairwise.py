"""Tables of a collective between pairs of nodes: "node1,node2 88.36", bus bandwidth in GB/s.

Scripts around nccl-tests write them; no tool has this name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.network_paths import NodePair
from ....models.facts.records import Record
from ....models.facts.units import from_gigabytes
from ..core.part import Part

# Names of nodes; rates.py reads rows about devices
_NAME = r"(?!(?i:gpu|cuda|numa|mlx5_|host\b|cpu))[A-Za-z][\w.-]{0,62}"
_JOINT, _RATE = r"(?:,[ \t]?|[ \t]?<->[ \t]?)", r"[0-9]{1,4}\.[0-9]{1,3}"
_END = r"[ \t]*(?:GB/s[ \t]*)?(?:#.*)?"
BEGIN = rf"^[ \t]*{_NAME}{_JOINT}{_NAME}[ \t:,]+{_RATE}{_END}$"
_ROW = re.compile(rf"[ \t]*({_NAME}){_JOINT}({_NAME})[ \t:,]+({_RATE}){_END}")


def read(part: Part) -> Iterator[Record]:
    """The rate of each pair.

    If a pair was measured several times, the highest: disturbances only lower a measurement.
    """
    best: dict[str, NodePair] = {}
    for number, line in part.lines():
        row = _ROW.fullmatch(line)
        if row and row[1] != row[2]:
            key, rate = f"{row[1]}-{row[2]}", from_gigabytes(float(row[3]))
            known = best.get(key)
            if known is None or (known.rate or 0) < rate:
                best[key] = NodePair(key=key, a=row[1], b=row[2], rate=rate, cites={"rate": part.cite(number, line)})
    yield from best.values()
