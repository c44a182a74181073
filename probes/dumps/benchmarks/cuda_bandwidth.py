"""Results of bandwidthTest of the CUDA samples: https://github.com/NVIDIA/cuda-samples, bandwidthTest.cu.

The reader takes copies of pinned memory only. Copies of pageable memory pass through a buffer of the driver. Copies
inside a GPU count bytes read and bytes written. Neither is the rate of a link. For several GPUs the tool prints a sum,
although it measures them one after another. If an excerpt does not name the GPU, its key is "gpu".
"""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import Record
from ....models.facts.units import from_gigabytes
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Line, Tool

_COPIES = r"(?:Host to Device|Device to Host|Device to Device)"
BEGIN = (
    rf"^[ \t]*(?:\[CUDA Bandwidth Test\] - Starting|{_COPIES} Bandwidth(?:, [0-9]{{1,4}} Device\(s\))?[ \t]*$"
    r"|bandwidthTest-(?:H2D|D2H|D2D)[\w-]{0,40}, Bandwidth = )"
)
_HOW = "bandwidthTest --memory=pinned --device=0, and so on for each GPU"
_STAGED = "copies of pageable memory go through a buffer of the driver"
_H2D, _D2H = {"copies": "Host to Device|H2D"}, {"copies": "Device to Host|D2H"}
_PAGEABLE, _SEVERAL = {"memory": "PAGEABLE|Paged"}, {"gpus": "0|[2-9]|[0-9]{2,4}"}
_ODD = "a rate is not in the form that the tool prints"
_SUM = "the sum over {gpus} GPUs that copied one after another"
_TOOL = Tool(
    lines=(
        Line(r"\[CUDA Bandwidth Test\] - Starting.*", forgets=("*",)),
        Line(r"Device (?P<gpu>\d{1,4}): (?P<name>\S.*)"),
        Line(
            rf"(?P<copies>{_COPIES}) Bandwidth(?:, (?P<gpus>\d{{1,4}}) Device\(s\))?",
            forgets=("gpus", "memory", "unit"),
        ),
        Line(r"(?P<memory>PINNED|PAGEABLE) Memory Transfers"),
        Line(r".{0,80}Transfer Size \(Bytes\)\s+Bandwidth\((?P<unit>[GM]B)/s\)"),
    ),
    rows=(
        r"(?P<size>\d{1,12})\s+(?P<rate>\d{1,9}\.\d)",
        r"(?P<size>\d{3,12})\s+(?P<odd>\d)(?P<rate>\d{0,8}[\d.,e+-]{0,12})",
        r"bandwidthTest-(?P<copies>H2D|D2H|D2D)(?:-(?P<memory>Pinned|Paged))?(?:-?WriteCombined)?, "
        r"Bandwidth = (?P<rate>\d{1,9}\.\d) (?P<unit>[GM]B)/s, Time = \S{1,20} s, Size = (?P<size>\d{1,12}) bytes"
        r"(?:, NumDevsUsed = (?P<gpus>\d{1,4}))?",
    ),
    cases=(
        Case(when={"odd": r"\d"}, refused=_ODD, reason=Reason.INCOMPLETE),  # cut, or written by a person
        Case(when={"copies": "Device to Device|D2D"}),  # bytes read and bytes written inside a GPU
        Case(when={**_H2D, **_SEVERAL}, refused=_SUM, how=_HOW),
        Case(when={**_D2H, **_SEVERAL}, refused=_SUM, how=_HOW),
        Case(when={**_H2D, **_PAGEABLE}, refused=_STAGED, how=_HOW, subject="host-gpu{gpu}"),
        Case(when={**_D2H, **_PAGEABLE}, refused=_STAGED, how=_HOW, subject="gpu{gpu}-host"),
        # The tool prints rates below 1 GB/s with a single digit.
        Case(when={"unit": "GB", "rate": r"0\.\d"}),
        Case(ends=("host", "gpu{gpu}"), when=_H2D),
        Case(ends=("gpu{gpu}", "host"), when=_D2H),
    ),
    # The sample of CUDA 8 divides bytes * 2^10 by milliseconds * 2^20, so its megabyte is 1,024,000 bytes.
    units={"GB": from_gigabytes(1), "MB": 1.024e6},
    start={"gpu": ""},
    block="copies",
    needs=("copies", "memory", "unit"),
    lacks="the lines above this row do not name the direction, the memory and the unit",
    growing=True,
)


def read(part: Part) -> Iterator[Record]:
    """The GPU, and the rate of each copy size between GPU and host."""
    yield from read_tool(part, _TOOL)
