"""Results of SuperBench's gpu-copy-bw: https://github.com/microsoft/superbenchmark, docs/user-tutorial/benchmarks.

"gpu0_to_gpu1_write_by_dma 279.287", in GB/s: who sends, who receives, whose copy engine or kernel moves the bytes. With
"_and_" both directions run at once, and the number is their sum. Copies inside a GPU and those of all GPUs at once are
not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.said import Flow, Observation, Said
from ...models.units import from_gigabytes
from .matrix import unnamed
from .part import Part

_END = r"(?:cpu|gpu\d{1,3})"
BEGIN = rf"^(?:gpu-copy-bw[:/])?{_END}_(?:to|and)_{_END}_(?:read_|write_)?by_(?:sm|dma)(?:_under_numa\d{{1,3}})?[ \t:]"
_LINE = re.compile(
    rf"(?:gpu-copy-bw[:/])?({_END})_(to|and)_({_END})_(?:read_|write_)?by_(sm|dma)(?:_under_(numa\d{{1,3}}))?"
    r"[ \t:]+([0-9]{1,5}\.[0-9]{1,6})[ \t]*"
)
_OPS = {"dma": "copy", "sm": "copy-sm"}


def read(part: Part) -> Iterator[Said]:
    """The rate of each copy as an observation."""
    told: list[Said] = list(_rates(part))
    yield from (*told, *unnamed(told))


def _rates(part: Part) -> Iterator[Observation]:
    for number, line in part.lines():
        row = _LINE.fullmatch(line)
        if not row or row[1] == row[3] or not float(row[6]):
            continue
        host = row[5] or "host"
        ends = (row[1] if row[1] != "cpu" else host, row[3] if row[3] != "cpu" else host)
        both = row[2] == "and"
        flow = Flow(_OPS[row[4]], ends, beside=(ends[::-1],) if both else ())
        yield part.rate(flow, from_gigabytes(float(row[6]) / (2 if both else 1)), part.cite(number, line))
