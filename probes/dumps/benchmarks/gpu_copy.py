"""Results of SuperBench's gpu-copy-bw: https://github.com/microsoft/superbenchmark, docs/user-tutorial/benchmarks.

"gpu0_to_gpu1_write_by_dma 279.287", in GB/s: sender, receiver, and the GPU whose copy engine or kernel moves the bytes.
With "_and_" both directions run at the same time and the number is their sum. The reader skips copies inside a GPU and
copies of all GPUs at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.records import Record
from ....models.facts.units import from_gigabytes
from ..core.matrix import with_gpus
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Tool

_END = r"(?:cpu|gpu\d{1,3})"
BEGIN = (
    rf"^[ \t|]{{0,8}}(?:gpu-copy-bw[:/])?{_END}_(?:to|and)_{_END}_(?:read_|write_)?by_(?:sm|dma)"
    r"(?:_under_numa\d{1,3})?[ \t:|]"
)
# Sender, receiver and copier; not a copy inside a GPU, and not of several at once ("gpu_all_to_gpu0")
COPY = (
    rf"(?P<a>{_END})_(?P<way>to|and)_(?!(?P=a)_)(?P<b>{_END})_(?:read_|write_)?by_(?P<engine>sm|dma)"
    r"(?:_under_(?P<host>numa\d{1,3}))?"
)
COPIES = tuple(
    Case(ends, {**end, "way": way}, op="{engine}", both=both)
    for way, both in (("to", ""), ("and", "sum"))
    for ends, end in (
        (("{host}", "{b}"), {"a": "cpu"}),
        (("{a}", "{host}"), {"b": "cpu"}),
        (("{a}", "{b}"), {"a": "gpu.*"}),
    )
)
ENGINES = {"engine": {"dma": "copy", "sm": "copy-sm"}}
_TOOL = Tool(
    lines=(),
    rows=(rf"(?:gpu-copy-bw[:/])?{COPY}[ \t:]+(?P<rate>[0-9]{{1,5}}\.[0-9]{{1,6}})",),
    cases=COPIES,
    units={"": from_gigabytes(1)},
    meanings=ENGINES,
    start={"host": "host"},
)


def read(part: Part) -> Iterator[Record]:
    """The rate of each copy."""
    yield from with_gpus(read_tool(part, _TOOL))
