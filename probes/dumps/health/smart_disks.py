"""Health of ATA and SAS disks: `smartctl -a`, `-H` and `-A` (smartmontools, ataprint.cpp, scsiprint.cpp).

smart_log.py has the log of NVMe drives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from ....models.facts.health import DiskHealth
from ....models.facts.records import Evidence, Record
from ..core.fields import FactCollector
from ..core.part import Part

_ATTRIBUTE = r"[A-Z][A-Za-z]{2,20}(?:_[A-Za-z0-9-]{1,20}){0,5}"
_VALUES = r"[ ]+(?:0x[0-9a-f]{4}|[POSRCK-]{6})[ ]+\d{3}[ ]+\d{3}[ ]+(?:\d{3}|---)[ ]"
LINES_OF_SMARTCTL = (  # with which an output begins
    r"(?:[^\n]{0,80}\bsmartctl (?:-[^\n]{1,40} )?/dev/\w|[ \t]*(?:smartctl \d{1,2}\.\d"
    r"|=== START OF (?:INFORMATION|READ SMART DATA|SMART DATA) SECTION ==="
    r"|SMART overall-health self-assessment test result: |SMART Health Status: |ID# ATTRIBUTE_NAME[ ]))"
)
ANY_LINE = (
    rf"^[ \t]*(?:\d{{1,3}}[ ]+{_ATTRIBUTE}{_VALUES}|(?:Reallocated_Sector_Ct|Current_Pending_Sector"
    r"|Offline_Uncorrectable)[ ].{{0,60}}\braw=\d|# ?\d{1,2}[ ]+(?:Short|Extended) (?:offline|captive)[ ])"
)
_COMMAND = re.compile(r"\bsmartctl\b.{0,80}?/dev/(?:disk/by-id/)?([\w.:-]{2,80})")
_RESULT = re.compile(r"[ \t]*SMART (?:overall-health self-assessment test result|Health Status): (\w[\w ]{1,60}\w)!?")
_ROW = re.compile(
    rf"[ \t]*\d{{1,3}}[ ]+(?P<name>{_ATTRIBUTE}){_VALUES}[ ]*(?:[A-Z][A-Za-z_-]+[ ]+[A-Z]\w+[ ]+)?"
    r"(?P<failed>FAILING_NOW|NOW|In_the_past|Past|-)[ ]+(?P<raw>\d{1,20})(?!\S*[.:])"
)
_SHORT = re.compile(rf"[ \t]*(?P<name>{_ATTRIBUTE})[ ]+.{{0,60}}?\braw=(?P<raw>\d{{1,20}})\b")
_MODEL = re.compile(r"[ \t]*(?:Device Model|Product):[ ]+(\S.{0,39}?)[ \t]*$")
_TEST = re.compile(r"[ \t]*# ?(\d{1,2})[ ]+[A-Z]\w+ (?:offline|captive)[ ]+(Completed[^\n]{0,40}?)[ ]{2,}")
_DEFECTS = re.compile(r"[ \t]*Elements in grown defect list:[ ]+(\d{1,9})\b")
# The error counters of SAS disks: the last column has the errors that were not corrected.
_COUNTERS = re.compile(r"[ \t]*(?:read|write|verify):(?:[ ]+\d{1,20}){5}[ ]+\d{1,12}[.,]\d{1,3}[ ]+(\d{1,12})[ \t]*$")
_HEADER = re.compile(r"[ \t]*smartctl \d|.{0,80}\bsmartctl .{0,80}/dev/")
_OF_NVME = re.compile(
    r"NVMe (?:Log|Version|Identify)|PCI Vendor(?:/Subsystem)? ID|IEEE OUI Identifier|/dev/nvme|Critical Warning"
)
FIELDS = {
    "Current_Pending_Sector": "pending",
    "Offline_Uncorrectable": "uncorrectable",
    "Reallocated_Sector_Ct": "reallocated",
    "Reallocate_NAND_Blk_Cnt": "reallocated",
    "Reported_Uncorrect": "unrecovered",
    "Reported_Uncorrectable_Errors": "unrecovered",
    "Uncorrectable_Error_Cnt": "unrecovered",
    "Uncorrectable_Sector_Ct": "unrecovered",
}
_UNNAMED = "disk"
_GOOD = ("PASSED", "OK")
_BAD = re.compile(r"\bFAILED\b|\bFAILURE\b")


class _Reading(Struct):
    found: FactCollector
    key: str = _UNNAMED
    results: int = 0  # assessments of disks without a name
    begun: bool = True  # the disk has a name that no assessment has followed, or nothing followed its assessment

    def named(self, name: str) -> None:
        self.key, self.begun = name, True

    def result(self, text: str, where: Evidence) -> None:
        """The assessment. A second one without a new name is of another disk, unless a line is there twice."""
        known = self.found.facts.get((DiskHealth, self.key), {})
        if "passed" in known and not self.begun:
            self.results += 1
            self.key = f"{_UNNAMED} {self.results + 1}"
        passed = True if text in _GOOD else False if _BAD.search(text) else None
        self.found.add(DiskHealth, self.key, where, passed=passed)


def read(part: Part) -> Iterator[Record]:
    """A `DiskHealth` per disk. Outputs about NVMe drives are left to smart_log.py."""
    reading, failing, nvme = _Reading(FactCollector()), dict[str, list[str]](), _lines_of_nvme(part)
    uncorrected: dict[str, tuple[int, Evidence]] = {}
    for number, line in part.lines():
        where = part.cite(number, line)
        if number in nvme:
            continue
        if command := _COMMAND.search(line):
            reading.named(command[1])
        elif result := _RESULT.match(line):
            reading.result(result[1], where)
            reading.begun = True
        elif row := _ROW.match(line) or _SHORT.match(line):
            if row.groupdict().get("failed") in ("FAILING_NOW", "NOW"):
                failing.setdefault(reading.key, []).append(row["name"])
                reading.found.add(DiskHealth, reading.key, where, failing=())
            reading.begun = False
            if field := FIELDS.get(row["name"]):
                reading.found.add(DiskHealth, reading.key, where, **{field: int(row["raw"])})
        elif model := _MODEL.match(line):
            reading.found.add(DiskHealth, reading.key, where, model=model[1])
        elif test := _TEST.match(line):
            reading.found.add(DiskHealth, reading.key, where, unreadable="without error" not in test[2])
        elif counters := _COUNTERS.match(line):
            before = uncorrected.get(reading.key, (0, where))
            uncorrected[reading.key] = max(before, (int(counters[1]), where), key=lambda one: one[0])
        elif defects := _DEFECTS.match(line):
            reading.begun = False
            reading.found.add(DiskHealth, reading.key, where, reallocated=int(defects[1]))
    for key, names in failing.items():
        known = reading.found.facts[DiskHealth, key]
        known["failing"] = (tuple(dict.fromkeys(names)), known["failing"][1])
    for key, (count, where) in uncorrected.items():
        reading.found.add(DiskHealth, key, where, unrecovered=count)
    reading.found.drop_repeats(_UNNAMED)
    yield from reading.found.records()


def _lines_of_nvme(part: Part) -> set[int]:
    """The numbers of the lines of logs of NVMe drives. Any line of an output can show that. An output of `-H`, which
    has the assessment alone, is like that of other disks.
    """
    lines, found = part.text.split("\n"), set[int]()
    starts = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    # The first line of an output is below its command
    starts = [number for before, number in pairwise([-9, *starts]) if not _follows(lines, before, number)]
    for begin, end in pairwise([0, *starts, len(lines)]):
        output = lines[begin:end]
        alone = any(map(_RESULT.match, output)) and "Critical Warning" not in "\n".join(output)
        mixed = any(_ROW.match(line) or _SHORT.match(line) for line in output)  # with the output of another disk
        if any(map(_OF_NVME.search, output)) and not alone and not mixed:
            found.update(range(begin, end))
    return found


def _follows(lines: Sequence[str], before: int, number: int) -> bool:
    return number - before == 1 and bool(_COMMAND.search(lines[before])) and not _COMMAND.search(lines[number])
