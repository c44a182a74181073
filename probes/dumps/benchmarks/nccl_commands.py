"""Variables on the command lines of nccl-tests: "NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 8", "mpirun -x NCCL_NET=IB".

A command is known by its program and an option. Its variables count only if each run of the text has them: people also
show a run with a variable and a run without it. The command and its results can be in two blocks of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.catalog.settings import settings
from ....models.facts.machine import Setting
from ..core.part import Part

OPS = "all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|gather|scatter"
_RUN = rf"[^\n]{{0,600}}?(?<![\w.-])(?:{OPS})_perf(?:_mpi)?[ \t]+-{{1,2}}[a-z]"
# A command, or a line of one that goes on below
BEGIN = rf"(?:{_RUN}|[^\n]{{0,300}}?(?<![\w.-])NCCL_[A-Z0-9_]{{1,60}}=[^\s\\]{{1,80}}[^\n]{{0,300}}\\$)"
_LONGEST = 4000  # characters of a command
_COMMAND = re.compile(_RUN)
_VARIABLE = re.compile(r"(?<![\w.-])(NCCL_[A-Z0-9_]{1,60})=(\"[^\"\n]{1,80}\"|'[^'\n]{1,80}'|[^\s,;\"']{1,80})")


# A row of results, possibly behind the rank that a launcher puts before it
_RESULT = re.compile(
    r"^[^\n]{0,80}?(?<![^\s:>])[0-9]{1,15}[ \t]+[0-9]{1,15}[ \t]+[a-z][a-z0-9_]{2,15}(?:[ \t]+[\w.+/-]{1,16}){4}",
    re.MULTILINE,
)


def read_commands(part: Part) -> Iterator[Setting]:
    """A `Setting` per variable that all runs of a whole text have."""
    if "_perf" not in part.text or "NCCL_" not in part.text:
        return
    commands, rows = list(_commands(part)), [number for number, _ in part.matches(_RESULT)]
    ends = [*(number for number, _ in commands[1:]), part.text.count("\n") + 1]
    runs = [one for one, end in zip(commands, ends, strict=False) if any(one[0] < row < end for row in rows)]
    if not runs or any(row < commands[0][0] for row in rows):
        return
    values = [{name: value.strip("\"'") for name, value in _VARIABLE.findall(line)} for _, line in runs]
    for name, value in values[0].items():
        row = settings().get(name)
        if row and not row.paths and all(other.get(name) == value for other in values):
            yield Setting(key=name, value=value, cites={"value": part.cite(*runs[0])})


def _commands(part: Part) -> Iterator[tuple[int, str]]:
    """The number of a line of each command, and its text without line breaks. Its last line may have options only."""
    whole, last = "", -1
    for number, line in part.lines_with(("_perf", "\\")):
        continues = whole.endswith("\\") and number == last + 1 and len(whole) < _LONGEST
        if not continues and _COMMAND.match(whole):
            yield last, whole
        whole, last = f"{whole[:-1]} {line.strip()}" if continues else line, number
    if _COMMAND.match(whole):
        yield last, whole
