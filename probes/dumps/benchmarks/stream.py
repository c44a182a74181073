"""Results of STREAM: https://www.cs.virginia.edu/stream, FTP/Code/stream.c (5.10), Versions/stream.c.5.9, stream_mpi.c;
and of BabelStream: https://github.com/UoB-HPC/BabelStream, src/main.cpp.

A rate counts bytes read and bytes written, in MB/s (10^6). The output does not show the processors of the threads, so
the flow is that of the whole host memory. The reader takes Copy and Triad of the four loops.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.records import Record
from ....models.facts.units import from_megabytes
from ..core.part import Part
from ..core.read_tool import read_tool
from ..core.tables import Case, Line, Tool

_LINES = (
    r"STREAM version [$]Revision: |STREAM Benchmark implementation in |This system uses [0-9]{1,3} bytes per "
    r"|Total Aggregate Array size = |Array size = [0-9]{1,15}(?: \(elements\))?, Offset = "
    r"|Number of Threads (?:requested|counted) = [0-9]|Your clock granularity(?:/precision)? appears to be "
    r"|WARNING -- The above is only a rough guideline"
    r"|Function[ \t|]{1,12}(?:Best Rate MB/s|Rate \(MB/s\))[ \t|]{1,8}Avg time"
    r"|BabelStream[ \t]*$|Implementation: [A-Z][\w ,.+-]{1,40}$|Function[ \t|]{1,12}MBytes/sec[ \t|]{1,8}Min \(sec\)"
    r"|Printing one line per active thread|Solution Validates: |Failed Validation on array "
)
BEGIN = rf"^[ \t|]*(?:-{{20,}}[ \t]*\n(?:[ \t.]*\n){{0,2}}[ \t|]*)?(?:{_LINES})"
_HOW = "build STREAM with OpenMP, and run it on one node with a thread for each core"
_ONE = "one thread cannot use the full memory bandwidth"


def _refused(why: str, how: str = _HOW, **when: str) -> Case:
    return Case(when=when, what="rate of {loop}", refused=why, how=how, subject="host")


_TOOL = Tool(
    lines=(
        Line(r"STREAM version [$]Revision: .*", forgets=("*",)),
        # The CUDA version measures GPU memory.
        Line(r"STREAM Benchmark implementation in .*", forgets=("*",), sets={"memory": "gpu"}),
        Line(r"BabelStream", forgets=("*",)),
        Line(r"Implementation: (?:OpenMP|TBB)"),
        Line(r"Implementation: (?:Serial|serial).*", sets={"threads": "1"}),
        Line(r"Implementation: .*", sets={"memory": "gpu"}),  # for some of them: or the host
        Line(r"Using (?:CUDA|HIP|OpenCL|SYCL) device .*", sets={"memory": "gpu"}),
        Line(r"This system uses (?P<size_width>\d{1,3}) bytes per .*"),
        Line(r"Array size = (?P<size>\d{1,15})(?: \(elements\))?, Offset = .*"),
        Line(
            r"(?:Total Aggregate Array size = |Data is distributed across \d{1,9} MPI ranks).*",
            sets={"ranks": "several"},
        ),
        Line(r"Number of Threads (?:requested|counted) = (?P<threads>\d{1,6})"),
        Line(r"Your clock granularity.*", sets={"timed": "yes"}),  # follows the line with the threads
        Line(r"Function\s+(?:(?:Best )?Rate|MBytes/sec).*", sets={"headed": "yes"}),
    ),
    rows=(r"(?P<loop>Copy|Triad):?\s+(?P<rate>\d{1,9}\.\d{1,4})(?:\s+\d{1,6}\.\d{1,9}){3}",),
    cases=(
        Case(when={"memory": "gpu"}),
        _refused("the sum over MPI ranks on one or more nodes", ranks="several"),
        _refused(_ONE, threads="1"),
        _refused(_ONE, size=".+", timed="yes", threads=""),  # built without OpenMP
        _refused(
            "arrays of {size} elements fit into the caches of a processor",
            "build STREAM with arrays of at least four times the size of all last-level caches",
            size=r"[0-9]{1,6}|[1-3][0-9]{6}",
        ),
        Case(ends=("host",), op="{loop}"),
    ),
    units={"": from_megabytes(1)},
    meanings={"loop": {"Copy": "stream-copy", "Triad": "triad"}},
    start={"size_width": "0"},
    needs=("headed",),
    lacks="the lines above this row are missing, so the number of threads is unknown",
)


def read(part: Part) -> Iterator[Record]:
    """The best rates of Copy and Triad.

    A run with one thread gives none: one thread cannot use the full memory rate.
    """
    yield from read_tool(part, _TOOL)
