"""Intel Memory Latency Checker: the bandwidths between NUMA nodes (`mlc --bandwidth_matrix`).

https://www.intel.com/content/www/us/en/developer/articles/tool/intelr-memory-latency-checker.html. A row has the node
whose processors read, a column the node whose memory they read. 1 MB is 10^6 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.reason import Reason
from ....models.facts.records import Flow, NotChecked, Record
from ....models.facts.units import from_megabytes
from ..core.part import Part

BEGIN = (
    r"^[ \t]*(?:Intel\(R\) Memory Latency Checker|Measuring (?:Memory Bandwidths|Peak Injection Memory|idle latencies"
    r"|Maximum Memory|Loaded Latencies|cache-to-cache)|Bandwidths are in MB/sec \(1 MB/sec|Numa node[ ]{2,60}\d"
    r"|(?:ALL Reads|[1-3]:1 Reads-Writes|Stream-triad like)[ ]{0,20}:[ \t]{1,20}\d)"
)
_TITLE = re.compile(r"[ \t]*(?:Measuring .{0,80}|.{0,40}Latenc.{0,80}|Bandwidths are in MB/sec.{0,80})$")
_HEADING = re.compile(r"[ \t]*Numa node((?:[ ]+\d{1,3}){1,64})[ \t]*$")
_ROW = re.compile(r"[ \t]*(\d{1,3})((?:[ \t]+(?:\d{1,7}\.\d{1,2}|-)){1,64})[ \t]*$")
_SUM = re.compile(r"[ \t]*(ALL Reads|[1-3]:1 Reads-Writes|Stream-triad like)[ ]{0,20}:[ \t]+\d{1,8}\.\d")
_HOW = "mlc --bandwidth_matrix"


def read(part: Part) -> Iterator[Record]:
    """The rates of the matrix. The sums over all nodes give a gap."""
    columns: list[str] = []
    rates = False
    summed = ""
    for number, line in part.lines():
        if _TITLE.match(line):
            columns, rates = [], "andwidth" in line
        elif heading := _HEADING.match(line):
            columns = heading[1].split()
        elif (row := _ROW.match(line)) and rates and len(row[2].split()) == len(columns):
            for column, text in zip(columns, row[2].split(), strict=True):
                if text != "-" and float(text):
                    ends = (f"numa{column}",) if column == row[1] else (f"numa{column}", f"numa{row[1]}")
                    yield part.rate(Flow("read", ends), from_megabytes(float(text)), part.cite(number, line))
        elif _SUM.match(line):
            summed = summed or part.where(number)
    if summed:
        why = "the rate is a sum over all NUMA nodes"
        yield NotChecked(what="rate of read", subject="host", reason=Reason.OTHER, path=summed, detail=why, how=_HOW)
