"""Records of journals as log lines: journalctl -o json, export, verbose (systemd, docs/JOURNAL_EXPORT_FORMATS.md), and
dmesg --json.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any

from .json_text import loads

_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
_PAIR = re.compile(r"[ \t]*([A-Z_]{2,40})=(.*)")
_VERBOSE = re.compile(rf"[A-Z][a-z]{{2}} ({_ISO}(?:\.[0-9]{{1,6}})?) (\S{{1,8}}) \[[^\]\n]{{4,300}}\]$")
_OPENING = re.compile(r"[ \t]*\"dmesg\"[ ]?:[ ]?\[$")
_MEMBER = re.compile(r"[ \t]*\"(pri|time|msg|[A-Z_]{2,40})\"[ \t]?:[ \t]{0,4}(.*)$")


def journal_lines(lines: list[str]) -> list[str]:
    """Replace each journal record by one log line at the position of its message.

    The other lines of the record are empty.
    """
    written = list(lines)
    known: dict[str, str] = {}
    since, place = 0, -1  # first line of the record, line of its message
    for number, line in enumerate([*lines, ""]):
        text = line.strip()
        if text.startswith(("{", "data: {")) and '"MESSAGE"' in text:
            written[number] = _json_record(text.removeprefix("data: "), line)
            continue
        found = _PAIR.match(line) or _MEMBER.match(line)
        if not found and known:
            if place >= 0 and (log_line := _log_line(known)):
                written[since:number] = [log_line if at == place else "" for at in range(since, number)]
            known, place = {}, -1
        if _OPENING.match(line):
            written[number] = ""
        elif found:
            since = since if known else number
            known[found[1]] = found[2] if found.re is _PAIR else _json_text(found[2].rstrip().removesuffix(","))
            place = number if found[1] in ("MESSAGE", "msg") else place
        elif begun := _VERBOSE.match(line):
            known, since = {"VERBOSE": f"{begun[1]} {begun[2]}"}, number
    return written


def _json_text(text: str) -> str:
    """A JSON value on a line of its own, as text."""
    try:
        value = loads(text)
    except ValueError:
        return ""
    return value.replace("\n", " ") if isinstance(value, str) else str(value)


def _json_record(text: str, line: str) -> str:
    """Replace a record of journalctl -o json."""
    try:
        record = loads(text.rstrip(","))
    except ValueError:
        return line
    texts = (
        {name: value for name, value in record.items() if isinstance(value, str)} if isinstance(record, dict) else {}
    )
    return _log_line({name: value.replace("\n", " ") for name, value in texts.items()}) or line


def _log_line(record: dict[str, Any]) -> str | None:
    """The record as journalctl -o short-iso or dmesg prints it. None: not a record of a log."""
    if "msg" in record and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", record.get("time", "")):
        return f"[{float(record['time']):.6f}] {record['msg']}"
    if "MESSAGE" not in record:
        return None
    program = "kernel" if record.get("_TRANSPORT") == "kernel" else record.get("SYSLOG_IDENTIFIER", "")
    pid = f"[{record['_PID']}]" if program != "kernel" and record.get("_PID") else ""
    return f"{_time(record)}{record.get('_HOSTNAME') or 'localhost'} {program or 'unknown'}{pid}: {record['MESSAGE']}"


def _time(record: dict[str, Any]) -> str:
    stamp = record.get("__REALTIME_TIMESTAMP", "")
    if "VERBOSE" in record:
        moment, zone = record["VERBOSE"].rsplit(" ", 1)
        return f"{moment.replace(' ', 'T')}{'+00:00' if zone in ('UTC', 'GMT') else ''} "
    if re.fullmatch("[0-9]{10,17}", stamp) and int(stamp) < 1 << 52:
        return datetime.fromtimestamp(int(stamp) / 1e6, timezone.utc).isoformat(timespec="microseconds") + " "
    return ""
