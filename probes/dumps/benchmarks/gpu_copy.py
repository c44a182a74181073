"""Results of SuperBench's gpu-copy-bw: https://github.com/microsoft/superbenchmark, docs/user-tutorial/benchmarks.

"gpu0_to_gpu1_write_by_dma 279.287", in GB/s: sender, receiver, and the GPU whose copy engine or kernel moves the bytes.
With "_and_" both directions run at the same time and the number is their sum. The reader skips copies inside a GPU and
copies of all GPUs at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.records import Flow, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import implied_gpus
from ..core.part import Part
from ..lines.markup import cells_of

_END = r"(?:cpu|gpu\d{1,3})"
BEGIN = (
    rf"^[ \t|]{{0,8}}(?:gpu-copy-bw[:/])?{_END}_(?:to|and)_{_END}_(?:read_|write_)?by_(?:sm|dma)"
    r"(?:_under_numa\d{1,3})?[ \t:|]"
)
_TAG = re.compile(rf"({_END})_(to|and)_({_END})_(?:read_|write_)?by_(sm|dma)(?:_under_(numa\d{{1,3}}))?")
_LINE = re.compile(r"(?:gpu-copy-bw[:/])?(\w{1,80})[ \t:]+([0-9]{1,5}\.[0-9]{1,6})[ \t]*")
_OPS = {"dma": "copy", "sm": "copy-sm"}


def read(part: Part) -> Iterator[Record]:
    """The rate of each copy."""
    records: list[Record] = list(_rates(part))
    yield from (*records, *implied_gpus(records))


def flow(tag: str) -> Flow | None:
    """The flow of a metric such as "cpu_to_gpu0_by_dma_under_numa1".

    None: a copy inside a GPU, or several copies at once.
    """
    found = _TAG.fullmatch(tag)
    if not found or found[1] == found[3]:
        return None
    host = found[5] or "host"
    ends = (found[1] if found[1] != "cpu" else host, found[3] if found[3] != "cpu" else host)
    return Flow(_OPS[found[4]], ends, beside=(ends[::-1],) if found[2] == "and" else ())


def _rates(part: Part) -> Iterator[Observation]:
    for number, line in part.lines():
        row = _LINE.fullmatch(cells_of(line).strip())
        copied = flow(row[1]) if row and float(row[2]) else None
        if row and copied:
            yield part.rate(copied, from_gigabytes(float(row[2]) / (1 + len(copied.beside))), part.cite(number, line))
