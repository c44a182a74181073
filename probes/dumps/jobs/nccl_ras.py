"""Status reports of NCCL's RAS subsystem (`ncclras -v`, NCCL 2.24 and later), as text and as JSON (2.28.7 and later).

Source: NVIDIA/nccl src/ras/client_support.cc. RAS reads the ranks one after the other, so counts of a running job
differ by some operations. `ncclras` prints the addresses of the processes and no host names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ....models.facts.job_ranks import Rank, RankState
from ....models.facts.machine import Nccl, NcclFailure
from ....models.facts.records import Evidence, Record
from ..core.part import Part
from . import nccl_ras_json

BEGIN = (
    r"^[ \t]*(?:NCCL version [0-9][\w.+]{0,40} compiled with CUDA [0-9]"
    r"|[ ]{0,8}Nodes[ ]{1,4}Processes\b|Group[ ]{2,6}Comms[ ]{2,6}Nodes[ ]{2,6}Ranks\b"
    r"|\#[0-9]{1,6}-[0-9]{1,6} \([0-9a-f]{16}\) (?:INCOMPLETE|ERROR|MISMATCH)\b"
    r"|DEAD[ \t]*\n[ \t]*[0-9]{1,6} job process|TIMEOUT[ \t]*\n[ \t]*Encountered [0-9]{1,6} communication timeout"
    r"|\{\s{0,20}\"nccl_version\":)"
)
_VERSION = re.compile(r"NCCL version (?P<version>\d+\.\d+(?:\.\d+)?)\S{0,40} compiled with CUDA (?P<cuda>\d+\.\d+)")
_COMMUNICATOR = re.compile(r"#\d+-\d+ \((?P<hash>[0-9a-f]{16})\) (?:INCOMPLETE|ERROR|MISMATCH)")
_PROCESS = re.compile(r"Process (?P<pid>\d{1,10}) on node (?P<host>[\da-f.:]{2,45}) managing GPU")
_RANK = re.compile(
    r"Rank (?P<rank>\d{1,7})(?: has status (?P<status>[A-Z]{1,10})| reported (?P<error>[A-Z][\w ]{1,40}?)"
    r"| has launched up to operation (?P<count>\d{1,18})| has (?P<none>not) launched any operations)?"
    r" -- (?:GPU (?P<cuda>\d{1,3})(?: \(NVML (?P<nvml>\d{1,3})\))? managed by process (?P<pid>\d{1,10})"
    r" on node (?P<host>[\da-f.:]{2,45})|\[process information not found\])[ \t]*(?P<end>\n?)$"
)
_SEVERAL = re.compile(
    r"\d{1,7} ranks have (?:launched up to operation (?P<count>\d{1,18})|(?P<none>not) launched any operations"
    r"|status (?P<status>[A-Z]{1,10}))|\d{1,7} ranks reported (?P<error>[A-Z][\w ]{1,40})$"
)
_OPERATION = re.compile(r"Communicator ranks have different (?P<operation>[A-Z]\w{1,30}) operation counts")
_STATUSES: dict[str, RankState] = {
    "NOCOMM": "absent",
    "INIT": "starting",
    "FINALIZE": "finalizing",
    "ABORT": "aborted",
}
_TOTAL = re.compile(r"\(total\)[^\n]*\n[ \t]*(?P<nodes>\d{1,7})[ \t]")


def read(part: Part) -> Iterator[Record]:
    """The library, and each rank that is dead, does not answer, failed, or is behind the majority."""
    if re.search(r"\"nccl_version\"\s?:", part.text):
        yield from nccl_ras_json.read(part)
        return
    yield from _library(part)
    yield from _ranks(part)
    yield from _communicators(part)


def _communicators(part: Part) -> Iterator[NcclFailure]:
    """The first communicator with a problem."""
    for number, found in islice(part.matches(_COMMUNICATOR), 1):
        line = part.cite(number, found[0])
        yield NcclFailure(key="communicator", error=found[0], text=line.text, count=1, cites={"text": line})


def _library(part: Part) -> Iterator[Nccl]:
    for number, found in part.matches(_VERSION):
        cite = part.cite(number, found[0])
        version, cuda = found["version"], found["cuda"]
        yield Nccl(key="nccl", version=version, cuda=cuda, cites={"version": cite, "cuda": cite})
    for number, found in part.matches(_TOTAL):
        nodes = int(found["nodes"])
        yield Nccl(key="nccl", nodes=nodes, cites={"nodes": part.cite(number + 1, found[0].rpartition("\n")[2])})


class _Group:
    """The lines since a headline: what they say about the ranks that follow."""

    def __init__(self) -> None:
        self.communicator = self.operation = ""
        self.majority: int | None = None
        self.several: re.Match[str] | None = None  # "2 ranks have launched up to operation 812"
        self.first: re.Match[str] | None = None  # the first such line, of most ranks

    def listed(self, rank: re.Match[str]) -> None:
        """A rank of a line about several follows it: this is not the majority, whose ranks are not listed."""
        if self.several is self.first and not (rank["status"] or rank["error"] or _count(rank) is not None):
            self.majority = None


def _ranks(part: Part) -> Iterator[Rank]:
    group, dead, in_dead = _Group(), set[tuple[str, int]](), False
    last = part.text.count("\n")
    for number, line in part.lines():
        end = "\n" if number < last else ""
        if found := _COMMUNICATOR.search(line):
            group, in_dead = _Group(), False
            group.communicator = found["hash"]
        elif line.strip() == "DEAD":
            in_dead = True
        elif in_dead and (found := _PROCESS.search(line)):
            dead.add((found["host"], int(found["pid"])))
        elif found := _OPERATION.search(line):
            group.operation, group.majority, group.several, group.first = found["operation"], None, None, None
        elif found := _SEVERAL.search(line):
            if group.first is None:
                group.majority, group.first = _count(found), found
            group.several = found
        elif found := _RANK.search(f"{line}{end}") if group.communicator else None:
            group.listed(found)
            yield from _rank(group, found, part.cite(number, line), dead)


def _rank(group: _Group, found: re.Match[str], cite: Evidence, dead: set[tuple[str, int]]) -> Iterator[Rank]:
    """The rank of a line, unless it is with the majority or runs."""
    says = found if found["status"] or found["error"] or _count(found) is not None else group.several
    number, pid = int(found["rank"]), int(found["pid"]) if found["pid"] else None
    host = found["host"] if found["end"] else None  # at the end of a cut text, the address may have lost digits
    count = _count(says) if says and group.operation else None
    state: RankState | None
    if count is not None:
        state = "late" if group.majority is not None and count < group.majority else None
    elif says and says["error"]:
        state = "failed"
    elif says and says["status"]:
        state = _STATUSES.get(says["status"])
    elif says and _count(says) is not None:
        return  # the line that names the operation is missing
    else:
        state = "dead" if host and pid is not None and (host, pid) in dead else "unresponsive"
    if state is None:
        return
    gpu = found["nvml"] or found["cuda"]
    values = {
        "number": number,
        "state": state,
        "error": says["error"] if says and state == "failed" else None,
        "host": host,
        "pid": pid,
        "gpu": int(gpu) if gpu else None,
        "operation": group.operation if state == "late" else None,
        "launched": count if state == "late" else None,
        "majority": group.majority if state == "late" else None,
    }
    yield nccl_ras_json.rank_of(group.communicator, values, cite)


def _count(found: re.Match[str]) -> int | None:
    groups = found.groupdict()
    return int(groups["count"]) if groups["count"] else 0 if groups["none"] else None
