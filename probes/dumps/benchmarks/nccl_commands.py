"""Variables on the command lines of nccl-tests: "NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 8", "mpirun -x NCCL_NET=IB".

A command is known by its program and an option. Its variables count only if each run of the text has them: people also
show a run with a variable and a run without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.catalog.settings import settings
from ....models.facts.machine import Setting
from ..core.part import Part

_OPS = "all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|gather|scatter"
COMMAND = rf"[^\n]{{0,600}}?(?<![\w.-])(?:{_OPS})_perf(?:_mpi)?[ \t]+-{{1,2}}[a-z]"
_COMMAND = re.compile(COMMAND)
_VARIABLE = re.compile(r"(?<![\w.-])(NCCL_[A-Z0-9_]{1,60})=(\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|[^\s,;\"']{1,80})")


def read(part: Part, rows: Sequence[int]) -> Iterator[Setting]:
    """A `Setting` per variable that all runs have. `rows` has the numbers of the lines of results."""
    commands = [(number, line) for number, line in part.lines_with(("_perf",)) if _COMMAND.match(line)]
    ends = [*(number for number, _ in commands[1:]), part.text.count("\n") + 1]
    runs = [one for one, end in zip(commands, ends, strict=False) if any(one[0] < row < end for row in rows)]
    if not runs or any(row < commands[0][0] for row in rows):
        return
    values = [{name: value.strip("\"'") for name, value in _VARIABLE.findall(line)} for _, line in runs]
    for name, value in values[0].items():
        row = settings().get(name)
        if row and not row.paths and all(other.get(name) == value for other in values):
            yield Setting(key=name, value=value, cites={"value": part.cite(*runs[0])})
