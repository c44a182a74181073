"""Results of bandwidthTest of the CUDA samples: https://github.com/NVIDIA/cuda-samples, bandwidthTest.cu.

The reader takes copies of pinned memory only. Copies of pageable memory pass through a buffer of the driver. Copies
inside a GPU count bytes read and bytes written. Neither is the rate of a link. For several GPUs the tool prints a sum,
although it measures them one after another. If an excerpt does not name the GPU, its key is "gpu".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....models.facts.gpu import Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Observation, Record
from ....models.facts.units import from_gigabytes
from ..core.part import Part
from ..core.sizes import drop_disturbed

_COPIES = r"(?:Host to Device|Device to Host|Device to Device)"
BEGIN = (
    rf"^[ \t]*(?:\[CUDA Bandwidth Test\] - Starting|{_COPIES} Bandwidth(?:, [0-9]{{1,4}} Device\(s\))?[ \t]*$"
    r"|bandwidthTest-(?:H2D|D2H|D2D)[\w-]{0,40}, Bandwidth = )"
)
_STARTED = re.compile(r"\s*\[CUDA Bandwidth Test\] - Starting.*")
_GPU = re.compile(r"Device (\d{1,4}): (\S.*)")
_HEADING = re.compile(rf"\s*(?P<copies>{_COPIES}) Bandwidth(?:, (?P<gpus>\d{{1,4}}) Device\(s\))?\s*")
_MEMORY = re.compile(r"\s*(PINNED|PAGEABLE) Memory Transfers\s*")
_COLUMNS = re.compile(r".{0,80}Transfer Size \(Bytes\)\s+Bandwidth\(([GM]B)/s\)\s*")
_ROW = re.compile(r"\s*(?P<size>\d{1,12})\s+(?P<rate>\d{1,9}\.\d)\s*")
_LINE = re.compile(
    r"\s*bandwidthTest-(?P<copies>H2D|D2H|D2D)(?:-(?P<memory>Pinned|Paged))?(?:-?WriteCombined)?, "
    r"Bandwidth = (?P<rate>\d{1,9}\.\d) (?P<unit>[GM]B)/s, Time = \S{1,20} s, Size = (?P<size>\d{1,12}) bytes"
    r"(?:, NumDevsUsed = (?P<gpus>\d{1,4}))?\s*"
)
_SHORT = {"Host to Device": "H2D", "Device to Host": "D2H", "Device to Device": "D2D"}
# The sample of CUDA 8 divides bytes * 2^10 by milliseconds * 2^20, so its megabyte is 1,024,000 bytes.
_UNITS = {"GB": from_gigabytes(1), "MB": 1.024e6}
_LEAST = 1.0  # GB/s; the tool prints smaller rates with a single digit


@dataclass(slots=True)
class _Table:
    """The headings before a row."""

    gpu: str = "gpu"
    copies: str = ""  # "H2D", "D2H", "D2D"
    gpus: int = 1
    pinned: bool | None = None
    unit: str = ""


def read(part: Part) -> Iterator[Record]:
    """The GPU, and the rate of each copy size between GPU and host."""
    yield from drop_disturbed(_records(part))


def _records(part: Part) -> Iterator[Record]:
    table, refused = _Table(), dict[str, NotChecked]()
    for number, line in part.lines():
        if _STARTED.fullmatch(line):
            table = _Table()
        elif gpu := _GPU.fullmatch(line.strip()):
            table.gpu = f"gpu{int(gpu[1])}"
            yield Gpu(key=table.gpu, name=gpu[2], cites={"name": part.cite(number, line)})
        elif heading := _HEADING.fullmatch(line):
            table = _Table(table.gpu, _SHORT[heading["copies"]], int(heading["gpus"] or 1))
        elif memory := _MEMORY.fullmatch(line):
            table.pinned = memory[1] == "PINNED"
        elif columns := _COLUMNS.fullmatch(line):
            table.unit = columns[1]
        elif row := _ROW.fullmatch(line):
            yield from _copy(part, number, line, table, row, refused)
        elif row := _LINE.fullmatch(line):
            pinned = row["memory"] == "Pinned" if row["memory"] else None
            one = _Table(table.gpu, row["copies"], int(row["gpus"] or 1), pinned, row["unit"])
            yield from _copy(part, number, line, one, row, refused)
    yield from refused.values()


def _copy(
    part: Part, number: int, line: str, table: _Table, row: re.Match[str], refused: dict[str, NotChecked]
) -> Iterator[Observation]:
    """The rate of a row. If the rate cannot be used, the reason goes into `refused`, once per direction."""
    if table.copies not in ("H2D", "D2H") or table.pinned is None or not table.unit:
        return
    ends = ("host", table.gpu) if table.copies == "H2D" else (table.gpu, "host")
    size, rate = int(row["size"]), float(row["rate"])
    if table.gpus != 1 or not table.pinned:
        subject, where = "-".join(ends) if table.gpus == 1 else "node", part.where(number)
        why = (
            "copies of pageable memory go through a buffer of the driver"
            if table.gpus == 1
            else f"the sum over {table.gpus} GPUs that copied one after another"
        )
        how = "bandwidthTest --memory=pinned --device=0, and so on for each GPU"
        refused.setdefault(
            f"{ends} {why}",
            NotChecked(
                what="rate of copy", subject=subject, reason=Reason.NOT_MEASURED, path=where, detail=why, how=how
            ),
        )
    elif size and (rate >= _LEAST or (table.unit == "MB" and rate)):
        yield part.rate(Flow("copy", ends, size), rate * _UNITS[table.unit], part.cite(number, line))
