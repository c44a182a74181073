"""Health of drives: `nvme smart-log` (text, -H, JSON) and `smartctl -a`. health/ has ATA and SAS disks.

nvme-cli (nvme-print-stdout.c, nvme-print-json.c), smartmontools (nvmeprint.cpp), NVM Express Base Specification 2.0,
5.16.1.3. The first line or the command names the drive. Without both, the drive has no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Event, Nvme
from ....models.facts.records import Evidence, Record
from ...kernel_log.messages import KIND
from ..core.fields import FactCollector
from ..core.key_values import begins, collect, entries_of, key, number, together
from ..core.part import Part
from ..health import smart_disks, smart_json

_NAMES = (
    "critical_warning",
    "[Cc]ritical [Ww]arning",
    "available_spare(?:_threshold)?",
    "Available Spare(?: Threshold)?",
    "avail_spare",
    "spare_thresh",
    "percentage_used",
    "percent_used",
    "Percentage Used",
    "media_errors",
    "Media and Data Integrity Errors",
)
_COMMAND = r"[^\n]{0,160}\bnvme (?:smart-log|get-log)\b[^\n]{0,40}/dev/nvme\d"
BEGIN = (
    rf"^(?:[ \t]*Smart Log for NVME device:|{_COMMAND}|{smart_disks.LINES_OF_SMARTCTL}|{smart_json.BEGIN}"
    rf"|{begins(_NAMES, '[0-9]')})"
)
ANY_LINE = smart_disks.ANY_LINE
_DRIVE = re.compile(r"(?:Smart Log for NVME device:|/dev/)\s*(?:/dev/)?(nvme\d{1,4})(?:c\d+)?(?:n\d{1,4})?\b")
_COUNT = r"(?:0x[0-9a-fA-F]{1,4}|[0-9][0-9,.'_  ]{0,30})(?:\s.*)?"
_PERCENT = r"[0-9]{1,3} ?%.*"
_KEYS = together(
    key("critical_warning", Nvme, "critical_warning", r"(?:0x[0-9a-fA-F]{1,2}|[0-9]{1,3})(?:\s.*)?", number),
    key("available_spare", Nvme, "spare", _PERCENT, number),
    key("available_spare_threshold", Nvme, "spare_threshold", _PERCENT, number),
    key("percentage_used", Nvme, "used", _PERCENT, number),
    key("avail_spare", Nvme, "spare", r"[0-9]{1,3}", number),
    key("spare_thresh", Nvme, "spare_threshold", r"[0-9]{1,3}", number),
    key("percent_used", Nvme, "used", r"[0-9]{1,3}", number),
    key("media_errors|media and data integrity errors", Nvme, "media_errors", _COUNT, number),
    key("model number|mn", Nvme, "model", r"\S.{0,39}", str),
    key("firmware version", Nvme, "firmware", r"\S{1,8}", str),
)
# Of smartctl's JSON. In text, a percentage without its sign is damaged, and nvme-cli's JSON has bits with such names.
_BARE = r"[0-9]{1,3}"
_MEMBERS = together(
    key("available_spare", Nvme, "spare", _BARE, number),
    key("available_spare_threshold", Nvme, "spare_threshold", _BARE, number),
    key("percentage_used", Nvme, "used", _BARE, number),
)
_HEAT = re.compile(  # nvme-cli and smartctl
    r"[ \t]*(?:(?P<now>temperature)|critical comp(?:osite|\.)? temp(?:erature|\.) time)[ \t]*:[ \t]*"
    r"(?P<value>[0-9][0-9,]{0,8})\b",
    re.IGNORECASE,
)
_HOT = 80  # degrees Celsius; critical temperatures of drives are not lower
# The tools that write the names of the fields with "_" (nvme-cli) and with blanks (smartctl)
_TOOLS = (
    re.compile(r"critical_warning|available_spare|percentage_used|media_errors"),
    re.compile(r"Critical Warning:|Available Spare|Percentage Used|Media and D"),
)
UNNAMED = "nvme"  # the key of a drive that the text does not name


def read(part: Part) -> Iterator[Record]:
    """An `Nvme` per drive. A log without a name after another log is of another drive, unless it repeats its values.
    Lines of another tool within a log are of another drive, too: the first lines of its log are missing.
    """
    found, drive, named, logs = FactCollector(), UNNAMED, False, 0
    tool: re.Pattern[str] | None = None
    of_smartctl = '"nvme_smart_health_information_log"' in part.text
    for line, text in part.lines():
        if name := _DRIVE.search(text):
            drive, named, tool = name[1], True, None
        own = next((one for one in _TOOLS if one.search(text)), None)
        other, tool = None not in (own, tool) and own is not tool, own or tool
        for one in entries_of(part, line, text):
            if not name and (one.name == "critical warning" or other):
                logs += 1
                drive = drive if named else UNNAMED if logs == 1 else f"{UNNAMED} {logs}"
                named, tool = False, own
            if not collect(found, _KEYS, one, {Nvme: drive}) and of_smartctl:
                collect(found, _MEMBERS, one, {Nvme: drive})
    found.drop_repeats(UNNAMED)
    yield from found.records()
    yield from _heat(part)
    yield from smart_disks.read(part)
    yield from smart_json.read(part, smart_disks.FIELDS)


def _heat(part: Part) -> Iterator[Event]:
    """An event for each named drive that was above its critical temperature, with its temperature if it is hot now."""
    drive, now = "", 0
    for place, line in part.lines():
        if name := _DRIVE.search(line):
            drive, now = name[1], 0
        elif drive and (found := _HEAT.match(line)):
            value = int(found["value"].replace(",", "") or 0)
            if found["now"]:
                now = value
            elif value:
                yield _was_hot(drive, now, value, part.cite(place, line))


def _was_hot(drive: str, now: int, minutes: int, where: Evidence) -> Event:
    hot = now >= _HOT
    name = "nvme-is-hot" if hot else "nvme-was-hot"
    text = f"{minutes} minutes above its critical temperature"
    text = f"{drive}: {now} C now, {text}" if hot else f"{drive}: {text} in its life"
    key = f"{KIND} {drive} {name}"
    return Event(key=key, kind=KIND, name=name, subject=drive, text=text, count=1, cites={"text": where})
