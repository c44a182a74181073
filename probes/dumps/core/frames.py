"""Removes the frame around the lines of an output, so that they are lines of a tool again. Frames are quote marks of a
forum, host names (pdsh, clush), line numbers of grep, and records of journals and containers. The number of lines does
not change.

journalctl(1), -o json, export, verbose (systemd, docs/JOURNAL_EXPORT_FORMATS.md); dmesg(1), --json; the log files of
Docker (json-file) and of the container runtime interface (Kubernetes, pkg/kubelet/kuberuntime/logs).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from textwrap import dedent
from typing import Any

_QUOTE = re.compile(r"[ \t]{0,3}(?:>[ ]?){1,5}")
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
# A container's line with time and stream, or with time only; kubectl logs --prefix.
_STAMP = re.compile(
    rf"(?:{_ISO}[.,]?[0-9]{{0,9}}(?:Z|[+-][0-9:]{{5}}) (?:(?:stdout|stderr) [FP] )?|\[?{_ISO}[.,]?[0-9]{{0,9}}\]? "
    r"|\[pod/[\w./-]{1,200}\] )"
)
_FILE = re.compile(r"(?![0-9]+:)(?:/|\./)?[\w.+-]{1,80}(?:/[\w.+-]{1,80}){0,10}:(?=[\[A-Z<0-9])")
_ANY_NUMBER = re.compile(r"([0-9]{1,8})[:-]")
_NUMBER = re.compile(r"([0-9]{1,8})[:-](?! )")
_HOST = re.compile(r"([A-Za-z0-9][\w.-]{0,62})(?::[ \t]|:$| \| ?)")
# "node1", "node[1-3,7] (4)" between two lines of dashes. Host names contain digits, headlines do not.
_HEADING = re.compile(
    r"^-{10,80}[ \t]*\n([A-Za-z][\w.-]{0,62}(?:[0-9]|\[[0-9,-]{1,200}\])[\w.,\[\]-]{0,200})(?: \([0-9]{1,5}\))?[ \t]*"
    r"\n-{10,80}[ \t]*$"
    r"|^([A-Za-z0-9][\w.-]{0,62}) \| (?:CHANGED|SUCCESS|FAILED)(?: \| rc=[0-9]{1,3})? >>[ \t]*$",
    re.MULTILINE,
)
# Marks of Markdown, bullets of lists, and notes behind a line. A row of a table becomes "name: value".
_MARK = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+•] |[0-9]{1,2}[.)] )(?=\S)|(?<!\*)\*\*(?!\*)|`|[ \t]*\\$")
_NOTE = re.compile(r"[ \t]+(?:\# |// |<[-=]{1,3} ?|←|\u2b05).*$")
_ROW = re.compile(r"^[ \t]*\|[ ]*([^|]{1,80}?)[ ]*\|[ ]*([^|]{1,200}?)[ ]*\|?[ \t]*$")
# The beginning of a log line: time, host, program. The texts of the kernel's log have their own reader.
_LOGGED = re.compile(
    rf"^(?:\[?{_ISO}[^\s\]]{{0,16}}\]?|[A-Z][a-z]{{2}} [ 0-9][0-9] [0-9:]{{8}}|\[[0-9:. ]{{8,20}}\]"
    r"|[0-9:]{8}(?:[.,][0-9]{1,6})?)"
    r"[ \t]+(?:[\w.-]{1,60} )?(?:[\w./-]{1,40}(?:\[[0-9]{1,8}\])?: )?(?:(?:INFO|DEBUG|WARNING|ERROR)[:| -]{0,3} ?)?"
)
_FEWEST = 2  # the least number of lines with the same host name, or with line numbers
_CANDIDATES = 4
_PAIR = re.compile(r"[ \t]*([A-Z_]{2,40})=(.*)")
_VERBOSE = re.compile(rf"[A-Z][a-z]{{2}} ({_ISO}(?:\.[0-9]{{1,6}})?) (\S{{1,8}}) \[[^\]\n]{{4,300}}\]$")
_OPENING = re.compile(r"[ \t]*\"dmesg\"[ ]?:[ ]?\[$")
_MEMBER = re.compile(r"[ \t]*\"(pri|time|msg|[A-Z_]{2,40})\"[ \t]?:[ \t]{0,4}(.*)$")


def first_block(text: str) -> tuple[str, tuple[str, ...]]:
    """The first block of a text with a block per host (clush -b, dshbak, ansible), and the names of the other hosts."""
    headings = list(_HEADING.finditer(text)) if _HEADING.match(text.lstrip()[:2000]) else []
    if len(headings) < 2:
        return text, ()
    end = headings[1].start()
    return text[:end] + "\n" * text.count("\n", end), tuple(found[1] or found[2] for found in headings[1:])


def strip_frames(text: str, marks: bool = True) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each possible text without its frame, with the hosts whose lines are removed.

    Line numbers stay the same. Yields nothing if there is no frame. `marks`: also without bullets, notes and the
    beginnings of log lines.
    """
    if (level := dedent(text)) != text:
        yield level, ()
    lines = text.split("\n")
    unrolled = _journal_lines(lines)
    bare = [_without_prefix(line) if line is before else line for line, before in zip(unrolled, lines, strict=True)]
    if bare != lines:
        yield "\n".join(bare), ()
    if (numbered := _without_numbers(bare)) is not None:
        yield "\n".join(numbered), ()
    for plain in _plain(lines, bare) if marks else ():
        yield "\n".join(plain), ()
    named = [_HOST.match(line) for line in bare]
    counts = Counter(found[1] for found in named if found)
    alone = sum(map(bool, map(str.strip, bare))) == 1  # then only a name with a digit is a host, not a word of prose
    likely = [
        name
        for name, count in counts.most_common()
        if count >= _FEWEST or (alone and any(map(str.isdecimal, name)) and not name.isdecimal())
    ]
    for name in likely[:_CANDIDATES]:
        others = tuple(other for other in likely if other != name)
        yield (
            "\n".join(
                line[found.end() :] if found and found[1] == name else "" if found and found[1] in others else line
                for line, found in zip(bare, named, strict=True)
            ),
            others,
        )


def _plain(lines: list[str], bare: list[str]) -> Iterator[list[str]]:
    """The lines without indentation, without the beginnings of log lines, and without marks, each result once."""
    logged = [_LOGGED.sub("", line, count=1) for line in lines]
    tried = [bare, lines]
    for plain in (
        dedent("\n".join(bare)).split("\n"),
        logged,
        _unmarked(bare),
        _unmarked(logged),
        _rows(_unmarked(logged)),
    ):
        if plain not in tried:
            tried.append(plain)
            yield plain


def _unmarked(lines: list[str]) -> list[str]:
    """The lines without the marks of Markdown and without notes behind them."""
    plain = (_NOTE.sub("", line) for line in lines)
    return [_MARK.sub(lambda mark: mark["indent"] or "", line) for line in plain]


def _rows(lines: list[str]) -> list[str]:
    """Rows of a table with two columns as "name: value"."""
    return [_ROW.sub(r"\1: \2", line) for line in lines]


def _without_prefix(line: str) -> str:
    """A line without a quote mark, a container's time or a file name."""
    if line.startswith("{"):
        line = _container(line)
    for frame in (_QUOTE, _STAMP, _FILE):
        if found := frame.match(line):
            return line[found.end() :]
    return line


def _container(line: str) -> str:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    log = record.get("log") if isinstance(record, dict) and "stream" in record else None
    return log.rstrip("\n").replace("\n", " ") if isinstance(log, str) else line


def _without_numbers(lines: list[str]) -> list[str] | None:
    """The lines without the ascending line numbers of grep -n; None if there are none."""
    full = [line for line in lines if line]
    fewest = min(_FEWEST, len(full))
    every = bool(full) and all(map(_ANY_NUMBER.match, full))  # then the lines may begin with blanks
    form = _ANY_NUMBER if every else _NUMBER
    last, seen = -1, 0
    for line in lines:
        if found := form.match(line):
            if int(found[1]) <= last:
                return None
            last, seen = int(found[1]), seen + 1
    return [form.sub("", line, count=1) for line in lines] if seen >= fewest > 0 else None


def _journal_lines(lines: list[str]) -> list[str]:
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
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return value.replace("\n", " ") if isinstance(value, str) else str(value)


def _json_record(text: str, line: str) -> str:
    """Replace a record of journalctl -o json."""
    try:
        record = json.loads(text.rstrip(","))
    except (ValueError, RecursionError):
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
