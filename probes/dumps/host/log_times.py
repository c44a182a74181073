"""The time of a kernel log line in the formats of dmesg, journalctl and syslog.

dmesg(1): seconds since boot, -T, --time-format iso, -H, -d, -x, -r; journalctl(1), -o short and its variants; rsyslog's
traditional and ISO formats, RFC 5424; records of /dev/kmsg.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
# The program that logs, after the host name, and the text that busybox and some syslogs put in between.
_KERNEL = r"(?:[^\s:]{1,80} )?(?:[a-z0-9]{3,8}\.[a-z]{3,7} )?(?:kernel|vmunix)(?:\[[0-9]{1,3}\])?: {1,2}"
_BOOT = r"\[ {0,8}[0-9]{1,8}\.[0-9]{6}(?: <[ 0-9.]{1,20}>)?\](?: ?\[ {0,8}[TC][0-9]{1,10}\])?"
_ISO = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}"
_FRACTION = r"(?:[.,][0-9]{1,9})?"
_DELTA = r"(?: ?<[ 0-9.]{1,20}>)"  # seconds since the previous line: dmesg -d
_FIELDS = r"\S{1,20} \S{1,32} (?:-|\[[^\]\n]{0,200}\]) (?:\ufeff)?"  # of RFC 5424, after the program
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"

# Formats by clock: seconds since boot; a date with a time zone; a date without a time zone; a date without a year; no
# time. A format ends before the message, or before seconds since boot that precede the message.
FORMS: Mapping[str, str] = MappingProxyType(
    {
        "record": r"[0-9]{1,4},[0-9]{1,20},[0-9]{1,15},[-c](?:,[^;\n]{0,80})?;",
        "boot": rf"{_BOOT} (?:{_KERNEL})?",
        "zoned": rf"{_ISO}(?:,[0-9]{{6}}{_ZONE} |{_FRACTION}{_ZONE} {_KERNEL})|{_DAYS} {_ISO} (?:UTC|GMT) {_KERNEL}"
        rf"|1 {_ISO}{_FRACTION}{_ZONE} \S{{1,80}} kernel {_FIELDS}|[0-9]{{9,10}}\.[0-9]{{6}} {_KERNEL}",
        "dated": rf"\[{_DAYS} {_MONTHS} [ 0-9]?[0-9] {_CLOCK} [0-9]{{4}}{_DELTA}?\] |"
        rf"(?:{_DAYS} )?{_ISO}{_FRACTION}(?: [A-Z]{{3,5}})? {_KERNEL}",
        "yearless": rf"{_MONTHS} [ 0-9]?[0-9] {_CLOCK}{_FRACTION} {_KERNEL}",
        "untimed": rf"\[{_DELTA}\] |\[ {{0,4}}\+[0-9]{{1,6}}\.[0-9]{{6}}\] |"
        rf"\[{_MONTHS} ?[ 0-9]?[0-9] [0-9]{{2}}:[0-9]{{2}}\] ",
    }
)
LEVEL = r"(?:<[0-9]{1,3}>|(?:kern|user|daemon|auth|syslog) {0,4}:[a-z]{3,7} {0,4}: )?"  # dmesg -r, -x
_HEAD = re.compile(rf"[ \t]*{LEVEL}(?:" + "|".join(f"(?P<{name}>{form})" for name, form in FORMS.items()) + ")")
_AGAIN = re.compile(rf"(?:{_BOOT} ?|kernel: )")  # seconds since boot, after syslog's time
_SECONDS = re.compile(r"[0-9]{1,8}\.[0-9]{6}")
_UNIX = re.compile(r"[0-9]{9,10}\.[0-9]{6}")  # -o short-unix
_WHEN = re.compile(
    rf"(?P<date>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[T ](?P<time>{_CLOCK})(?:[.,](?P<fraction>[0-9]{{1,6}})[0-9]{{0,3}})?"
    rf"(?P<zone>{_ZONE})?"
)
_CTIME = re.compile(rf"(?P<month>{_MONTHS}) (?P<day>[ 0-9]?[0-9]) (?P<time>{_CLOCK})(?: (?P<year>[0-9]{{4}}))?")
_MONTH_FIRST = re.compile(rf"({_MONTHS} [ 0-9]?[0-9]) ([0-9]{{4}}) ({_CLOCK})")  # fabric manager
_ANYWHERE: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "zoned": re.compile(rf"{_ISO}{_FRACTION}{_ZONE}|(?<![0-9])1[0-9]{{9}}\.[0-9]{{6}}(?![0-9])"),
        "dated": re.compile(rf"{_ISO}{_FRACTION}|{_MONTHS} [ 0-9]?[0-9] (?:[0-9]{{4}} {_CLOCK}|{_CLOCK} [0-9]{{4}})"),
        "yearless": re.compile(rf"{_MONTHS} [ 0-9]?[0-9] {_CLOCK}"),
        "boot": re.compile(r"\[ {0,8}([0-9]{1,8}\.[0-9]{3,6})\]"),
    }
)
_LEAP = 2000  # a leap year, which has all days


def head(line: str) -> tuple[str, float | None, str]:
    """The clock of a line, its time in seconds (None without one), and the message. Times of different clocks are not
    comparable.

    "boot": seconds since boot. "zoned": since 1970. "dated": since 1970 in an unknown time zone. "yearless": since the
    beginning of a year. "untimed": no time.
    """
    found = _HEAD.match(line)
    if not found:
        return "untimed", None, line.strip()
    clock, text = found.lastgroup or "untimed", line[found.end() :]
    if again := _AGAIN.match(text):
        text = text[again.end() :]
    try:
        return ("boot" if clock == "record" else clock), _READ[clock](found[0]), text.strip()
    except (ValueError, OverflowError):  # for example 31 February or year 0
        return "untimed", None, text.strip()


def time_before(text: str) -> tuple[str, float | None]:
    """The clock and the time in the text before a message, in any format: logs of programs, containers and agents."""
    for clock, pattern in _ANYWHERE.items():
        if found := pattern.search(text):
            try:
                return clock, float(found[1]) if clock == "boot" else _calendar(found[0])
            except (ValueError, OverflowError):
                return "untimed", None
    return "untimed", None


def _nothing(text: str) -> float | None:
    return None


def _boot(text: str) -> float | None:
    found = _SECONDS.search(text)
    return float(found[0]) if found else None


def _record(text: str) -> float | None:
    return int(text.split(",")[2]) / 1e6


def _calendar(text: str) -> float | None:
    """Seconds of a date. An unknown time zone counts as UTC."""
    if found := _UNIX.match(text):
        return float(found[0])
    text = _MONTH_FIRST.sub(r"\1 \3 \2", text)
    if found := _WHEN.search(text):
        moment = datetime.fromisoformat(f"{found['date']}T{found['time']}").replace(tzinfo=timezone.utc)
        zone = (found["zone"] or "Z").replace(":", "").replace("Z", "+0000")
        east = timedelta(hours=int(zone[:3]), minutes=int(zone[0] + zone[3:]))
        return (moment - east).timestamp() + float(f"0.{found['fraction'] or 0}")
    if not (found := _CTIME.search(text)):
        return None
    month = _MONTHS.index(found["month"]) // 4 + 1
    day = datetime(int(found["year"] or _LEAP), month, int(found["day"]), tzinfo=timezone.utc)
    hours, minutes, seconds = (int(part) for part in found["time"].split(":"))
    begun = 0.0 if found["year"] else datetime(_LEAP, 1, 1, tzinfo=timezone.utc).timestamp()
    return day.timestamp() - begun + 3600 * hours + 60 * minutes + seconds


_READ: Mapping[str, Callable[[str], float | None]] = MappingProxyType(
    {
        "record": _record,
        "boot": _boot,
        "zoned": _calendar,
        "dated": _calendar,
        "yearless": _calendar,
        "untimed": _nothing,
    }
)
