"""`gpustat`: one line for each GPU: https://github.com/wookayin/gpustat, core.py (print_to).

`[0] NVIDIA L40S | 41'C,  97 % | 20311 / 46068 MB | alice(20300M)`. Sizes are in MiB. The processes are behind the last
bar; "(null)" is a process whose name and user the driver does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Gpu
from ....models.facts.records import Record
from ....models.facts.units import MIB
from ..core.fields import FactCollector
from ..core.part import Part

_LINE = (
    r"[ \t`]{0,8}\[(?P<gpu>[0-9]{1,3})\][ ](?P<name>[A-Za-z][^|\n]{2,60}?)[ ]{0,40}\|[ ]{0,4}(?P<heat>[0-9]{1,3}|\?\?)"
    r"['\u00b0\u2019]C,[ ]{1,4}(?P<load>[0-9]{1,3}|\?\?)[ ]%(?:,[^|\n]{1,40})?[ ]\|[ ]{1,6}(?P<used>[0-9]{1,7})"
    r"[ ]/[ ]{1,6}(?P<memory>[0-9]{1,7})[ ]MB(?:[ ]\|(?P<processes>[^\n`]{0,400}))?"
)
BEGIN = rf"^{_LINE}"
LINES = True
_PATTERN = re.compile(_LINE)
_PROCESS = re.compile(r"(?P<name>\S{1,60}?)\([0-9]{1,7}M\)")


def read(part: Part) -> Iterator[Record]:
    """A Gpu per line: name, temperature, load, memory and the number of processes whose names the driver knows."""
    found = FactCollector()
    for number, line in part.lines():
        one = _PATTERN.match(line)
        if one is None:
            continue
        shown = one["processes"]
        found.add(
            Gpu,
            f"gpu{int(one['gpu'])}",
            part.cite(number, line),
            name=one["name"],
            temperature=_number(one["heat"]),
            utilization=None if (load := _number(one["load"])) is None else load / 100,
            memory_used=int(one["used"]) * MIB,
            memory=int(one["memory"]) * MIB,
            processes=None if shown is None else len(_PROCESS.findall(shown)),
        )
    yield from found.records()


def _number(text: str) -> float | None:
    return float(text) if text.isdecimal() else None
