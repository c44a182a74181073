"""Results of STREAM: https://www.cs.virginia.edu/stream, FTP/Code/stream.c (5.10), Versions/stream.c.5.9, stream_mpi.c.

A rate counts bytes read and bytes written, in MB/s (10^6). The output does not show the processors of the threads, so
the flow is that of the whole host memory. The reader takes Copy and Triad of the four loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Observation, Record
from ....models.facts.units import from_megabytes
from ..core.part import Part

_LINES = (
    r"STREAM version [$]Revision: |STREAM Benchmark implementation in |This system uses [0-9]{1,3} bytes per "
    r"|Total Aggregate Array size = |Array size = [0-9]{1,15}(?: \(elements\))?, Offset = "
    r"|Number of Threads (?:requested|counted) = [0-9]|Your clock granularity(?:/precision)? appears to be "
    r"|WARNING -- The above is only a rough guideline|Function[ ]{1,12}(?:Best Rate MB/s|Rate \(MB/s\))[ ]{1,8}Avg time"
    r"|Printing one line per active thread|Solution Validates: |Failed Validation on array "
)
BEGIN = rf"^[ \t]*(?:-{{20,}}[ \t]*\n[ \t]*)?(?:{_LINES})"  # lines of dashes separate the blocks
_BEGUN = re.compile(r"\s*STREAM version [$]Revision: .*")
_ELSEWHERE = re.compile(r"\s*STREAM Benchmark implementation in .*")  # the CUDA version measures GPU memory
_WIDTH = re.compile(r"\s*This system uses (\d{1,3}) bytes per .*")
_ARRAY = re.compile(r"\s*Array size = (\d{1,15})(?: \(elements\))?, Offset = .*")
_RANKS = re.compile(r"\s*(?:Total Aggregate Array size = |Data is distributed across \d{1,9} MPI ranks).*")
_THREADS = re.compile(r"\s*Number of Threads (?:requested|counted) = (\d{1,6})\s*")
_TIMED = re.compile(r"\s*Your clock granularity.*")  # follows the line with the threads
_ROW = re.compile(r"\s*(Copy|Triad):\s+(\d{1,9}\.\d{1,4})(?:\s+\d{1,6}\.\d{1,9}){3}\s*")
_OPS = {"Copy": "stream-copy", "Triad": "triad"}
_MEMORY = ("host",)


@dataclass(slots=True)
class _Run:
    """The lines before the table."""

    host: bool = True
    ranks: bool = False
    threads: int | None = None
    width: int | None = None
    elements: int | None = None


def read(part: Part) -> Iterator[Record]:
    """The best rates of Copy and Triad.

    A run with one thread gives none: one thread cannot use the full memory rate.
    """
    run = _Run()
    for number, line in part.lines():
        if _BEGUN.fullmatch(line):
            run = _Run()
        elif _ELSEWHERE.fullmatch(line):
            run = _Run(host=False)
        elif _RANKS.fullmatch(line):
            run.ranks = True
        elif width := _WIDTH.fullmatch(line):
            run.width = int(width[1])
        elif array := _ARRAY.fullmatch(line):
            run.elements = int(array[1])
        elif threads := _THREADS.fullmatch(line):
            run.threads = int(threads[1])
        elif run.elements and run.threads is None and _TIMED.fullmatch(line):
            run.threads = 1  # built without OpenMP
        elif run.host and (row := _ROW.fullmatch(line)):
            yield from _rate(part, number, line, run, row)


def _rate(part: Part, number: int, line: str, run: _Run, row: re.Match[str]) -> Iterator[Observation | NotChecked]:
    op, rate = _OPS[row[1]], from_megabytes(float(row[2]))
    if run.ranks or run.threads == 1:
        why = (
            "the sum over MPI ranks on one or more nodes"
            if run.ranks
            else "one thread cannot use the full memory bandwidth"
        )
        how = "build STREAM with OpenMP, and run it on one node with a thread for each core"
        yield NotChecked(
            what=f"rate of {op}",
            subject="host",
            reason=Reason.NOT_MEASURED,
            path=part.where(number),
            detail=why,
            how=how,
        )
    elif rate:
        size = run.elements * run.width if run.elements and run.width else None
        yield part.rate(Flow(op, _MEMORY, size or None), rate, part.cite(number, line))
