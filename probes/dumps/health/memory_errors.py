"""Counts of memory errors: `ras-mc-ctl --error-count` and `--summary`, `edac-util`, `mcelog --client`.

rasdaemon (util/ras-mc-ctl.in), edac-utils (src/util/edac-util.c), mcelog (memdb.c). The lines of their logs are
messages (models/catalog/messages/memory.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Observation, Record
from ..core.part import Part

_COUNTED = r"mc#\d{1,3}(?:csrow#\d{1,3}|channel#\d{1,3}|slot#\d{1,3}|memory#\d{1,3}|dimm#\d{1,3}){0,4}"
_MODULE = r"(?:mc#\d{1,3}\S{0,60}|[A-Za-z][\w#-]{1,60}(?: [\w#-]{1,40}){0,3})"
_DIMM = r"SOCKET (?:any|\d{1,3}) CHANNEL (?:any|\d{1,3}) DIMM (?:any|\d{1,3})"
BEGIN = (
    r"^[ \t]*(?:Label[ \t]{1,60}CE[ \t]{1,20}UE[ \t]*$|No Memory errors\.|Memory controller events summary:"
    rf"|edac-util: |mc\d{{1,3}}: (?:csrow\d{{1,3}}: |noinfo|\d{{1,12}} (?:Unc|C)orrected Errors)|Memory errors[ \t]*$"
    rf"|{_DIMM}[ \t]*$|HardwareCorrupted:[ ]{{1,20}}\d)"
)
ANY_LINE = (
    rf"^[ \t]*(?:{_COUNTED}[ \t]{{1,40}}\d{{1,12}}[ \t]{{1,20}}\d{{1,12}}[ \t]*$|(?:un)?corrected memory errors:)"
)
_HEADING = re.compile(r"[ \t]*Label[ \t]+CE[ \t]+UE[ \t]*$")
_ROW = re.compile(rf"[ \t]*({_MODULE})[ \t]+(\d{{1,12}})[ \t]+(\d{{1,12}})[ \t]*$")
_NONE = re.compile(r"[ \t]*(?:No Memory errors\.|edac-util: No errors to report)")
_SUMMED = re.compile(
    r"[ \t]*(Corrected|Uncorrected|Fatal) on DIMM Label\(s\): '([^'\n]{1,80})' .{0,80}errors: (\d{1,12})"
)
_EDAC = re.compile(r"[ \t]*(mc\d{1,3}): (?:csrow\d{1,3}: )?(?:\S.{0,60}: )?(\d{1,12}) (Uncorrected|Corrected) Errors")
_PLACE = re.compile(rf"[ \t]*({_DIMM})[ \t]*$")
_KIND = re.compile(r"[ \t]*(un)?corrected memory errors:[ \t]*$")
_COUNT = re.compile(r"[ \t]*(\d{1,12}) (total|in 24h)[ \t]*$")
_CORRUPTED = re.compile(r"[ \t]*HardwareCorrupted:[ ]+(\d{1,12}) kB")
# Other kinds of errors that ras-mc-ctl has recorded
_OTHERS = re.compile(
    r"[ \t]*((?:MCE|PCIe AER|Disk|Extlog|ARM processor|Devlink)[\w ]{0,20} (?:summary|events|errors)):?[ \t]*$"
)
# "Memory failure events summary" of ras-mc-ctl: pages that the kernel gave up after an uncorrected error
_FATES = re.compile(r"[ \t]{1,16}(Recovered|Failed|Delayed|Ignored) errors: (\d{1,12})[ \t]*$")
_FAILURES = re.compile(r"[ \t]*Memory failure events summary:")
_CORRECTED, _UNCORRECTED, _DAILY = "ce_count", "ue_count", "ce_count_day"


class _Pages(Struct):
    """The pages of a summary, of all fates, and the most of several summaries: they never get fewer."""

    number: int = 0
    line: str = ""  # the first one
    count: int = 0
    most: int = 0

    def end(self) -> None:
        """The summary ends."""
        self.count, self.most = 0, max(self.most, self.count)


def read(part: Part) -> Iterator[Record]:
    """Counters of corrected and uncorrected errors of each module, and of the whole memory if there are none."""
    place = kind = ""
    table, pages = False, _Pages()
    for number, line in part.lines():
        if _HEADING.match(line):
            table = True
        elif (row := _ROW.match(line)) and (table or row[1].startswith("mc#")):
            yield _count(part, number, line, row[1], _CORRECTED, row[2])
            yield _count(part, number, line, row[1], _UNCORRECTED, row[3])
        elif _NONE.match(line):
            yield _count(part, number, line, "memory", _UNCORRECTED, "0")
        elif summed := _SUMMED.match(line):
            quantity = _CORRECTED if summed[1] == "Corrected" else _UNCORRECTED
            yield _count(part, number, line, summed[2], quantity, summed[3])
        elif _FAILURES.match(line):
            pages.end()
        elif fate := _FATES.match(line):
            pages.number, pages.line = (number, line) if not pages.line else (pages.number, pages.line)
            pages.count += int(fate[2])
        elif edac := _EDAC.match(line):
            yield _count(part, number, line, edac[1], _CORRECTED if edac[3] == "Corrected" else _UNCORRECTED, edac[2])
        elif named := _PLACE.match(line):
            place = named[1]
        elif its := _KIND.match(line):
            kind = _UNCORRECTED if its[1] else _CORRECTED
        elif kind and (count := _COUNT.match(line)):
            daily = _DAILY if kind == _CORRECTED else "ue_count_day"
            yield _count(part, number, line, place or "memory", kind if count[2] == "total" else daily, count[1])
        elif others := _OTHERS.match(line):
            why, how = f"{others[1]}: their number says nothing without a time", "ras-mc-ctl --errors, dmesg -T"
            path = part.where(number)
            yield NotChecked(what="dump", subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=how)
        elif corrupted := _CORRUPTED.match(line):
            yield _count(part, number, line, "memory", "corrupted", str(int(corrupted[1]) * 1024))
    pages.end()
    if pages.line:
        yield _count(part, pages.number, pages.line, "memory pages", _UNCORRECTED, str(pages.most))


def _count(part: Part, number: int, line: str, about: str, quantity: str, value: str) -> Observation:
    cite = part.cite(number, line)
    return Observation(about=about, quantity=quantity, unit="count", value=float(value), at=part.at, evidence=cite)
