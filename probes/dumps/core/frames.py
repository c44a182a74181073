"""What stands around the lines of an output: quotes of a forum, names of hosts (pdsh, clush), numbers of grep, records
of journals and containers. Without it they are lines of a tool again, as many as before.

journalctl(1), -o json, export, verbose (systemd, docs/JOURNAL_EXPORT_FORMATS.md); dmesg(1), --json; the log files of
Docker (json-file) and of the container runtime interface (Kubernetes, pkg/kubelet/kuberuntime/logs).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

_QUOTE = re.compile(r"[ \t]{0,3}(?:>[ ]?){1,5}")
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
# A container's line with its time and stream, its time alone; kubectl logs --prefix.
_STAMP = re.compile(
    rf"(?:{_ISO}[.,]?[0-9]{{0,9}}(?:Z|[+-][0-9:]{{5}}) (?:(?:stdout|stderr) [FP] )?|\[?{_ISO}[.,]?[0-9]{{0,9}}\]? "
    r"|\[pod/[\w./-]{1,200}\] )"
)
_FILE = re.compile(r"(?:/|\./)?[\w.+-]{1,80}(?:/[\w.+-]{1,80}){0,10}:(?=[\[A-Z<0-9])")
_NUMBER = re.compile(r"([0-9]{1,8})[:-](?! )")
_HOST = re.compile(r"([A-Za-z0-9][\w.-]{0,62})(?::[ \t]|:$| \| ?)")
# "node1", "node[1-3,7] (4)" between two rules; names of hosts have digits, headlines have not.
_HEADING = re.compile(
    r"^-{10,80}[ \t]*\n([A-Za-z][\w.-]{0,62}(?:[0-9]|\[[0-9,-]{1,200}\])[\w.,\[\]-]{0,200})(?: \([0-9]{1,5}\))?[ \t]*"
    r"\n-{10,80}[ \t]*$"
    r"|^([A-Za-z0-9][\w.-]{0,62}) \| (?:CHANGED|SUCCESS|FAILED)(?: \| rc=[0-9]{1,3})? >>[ \t]*$",
    re.MULTILINE,
)
_FEWEST = 2  # lines that one host has
_CANDIDATES = 4
_PAIR = re.compile(r"[ \t]*([A-Z_]{2,40})=(.*)")
_VERBOSE = re.compile(rf"[A-Z][a-z]{{2}} ({_ISO}(?:\.[0-9]{{1,6}})?) (\S{{1,8}}) \[[^\]\n]{{4,300}}\]$")
_OPENING = re.compile(r"[ \t]*\"dmesg\"[ ]?:[ ]?\[$")
_MEMBER = re.compile(r"[ \t]*\"(pri|time|msg|[A-Z_]{2,40})\"[ \t]?:[ \t]{0,4}(.*)$")


def first_block(text: str) -> tuple[str, tuple[str, ...]]:
    """Of a text in blocks below the names of hosts (clush -b, dshbak, ansible), the first; and the other hosts."""
    headings = list(_HEADING.finditer(text)) if _HEADING.match(text.lstrip()[:2000]) else []
    if len(headings) < 2:
        return text, ()
    end = headings[1].start()
    return text[:end] + "\n" * text.count("\n", end), tuple(found[1] or found[2] for found in headings[1:])


def unframed(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text without what stands around it, in each way that it can be meant, and the hosts whose lines are left out.

    Lines keep their numbers. Nothing where there is nothing around.
    """
    lines = text.split("\n")
    told = _records(lines)
    bare = [_bare(line) if line is before else line for line, before in zip(told, lines, strict=True)]
    if bare != lines:
        yield "\n".join(bare), ()
    if (numbered := _numbered(bare)) is not None:
        yield "\n".join(numbered), ()
    named = [_HOST.match(line) for line in bare]
    counts = Counter(found[1] for found in named if found)
    likely = [name for name, count in counts.most_common() if count >= _FEWEST]
    for name in likely[:_CANDIDATES]:
        others = tuple(other for other in likely if other != name)
        yield (
            "\n".join(
                line[found.end() :] if found and found[1] == name else "" if found and found[1] in others else line
                for line, found in zip(bare, named, strict=True)
            ),
            others,
        )


def _bare(line: str) -> str:
    """A line without a quote's mark, a container's time, a file's name."""
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


def _numbered(lines: list[str]) -> list[str] | None:
    """Without the numbers of grep -n, which rise from line to line."""
    last, seen = -1, 0
    for line in lines:
        if found := _NUMBER.match(line):
            if int(found[1]) <= last:
                return None
            last, seen = int(found[1]), seen + 1
    return [_NUMBER.sub("", line, count=1) for line in lines] if seen >= _FEWEST else None


def _records(lines: list[str]) -> list[str]:
    """Each record of a journal as one line of a log, where its message stood; its other lines are empty."""
    written = list(lines)
    known: dict[str, str] = {}
    since, place = 0, -1  # where the record begins, and has its message
    for number, line in enumerate([*lines, ""]):
        text = line.strip()
        if text.startswith(("{", "data: {")) and '"MESSAGE"' in text:
            written[number] = _entry(text.removeprefix("data: "), line)
            continue
        found = _PAIR.match(line) or _MEMBER.match(line)
        if not found and known:
            if place >= 0 and (shown := _shown(known)):
                written[since:number] = [shown if at == place else "" for at in range(since, number)]
            known, place = {}, -1
        if _OPENING.match(line):
            written[number] = ""
        elif found:
            since = since if known else number
            known[found[1]] = found[2] if found.re is _PAIR else _plain(found[2].rstrip().removesuffix(","))
            place = number if found[1] in ("MESSAGE", "msg") else place
        elif begun := _VERBOSE.match(line):
            known, since = {"VERBOSE": f"{begun[1]} {begun[2]}"}, number
    return written


def _plain(text: str) -> str:
    """A value of JSON on a line of its own."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return value.replace("\n", " ") if isinstance(value, str) else str(value)


def _entry(text: str, line: str) -> str:
    """A record of journalctl -o json."""
    try:
        record = json.loads(text.rstrip(","))
    except (ValueError, RecursionError):
        return line
    texts = (
        {name: value for name, value in record.items() if isinstance(value, str)} if isinstance(record, dict) else {}
    )
    return _shown({name: value.replace("\n", " ") for name, value in texts.items()}) or line


def _shown(record: dict[str, Any]) -> str | None:
    """As journalctl -o short-iso shows a record, or dmesg; None: it is no record of a log."""
    if "msg" in record and re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", record.get("time", "")):
        return f"[{float(record['time']):.6f}] {record['msg']}"
    if "MESSAGE" not in record:
        return None
    who = "kernel" if record.get("_TRANSPORT") == "kernel" else record.get("SYSLOG_IDENTIFIER", "")
    pid = f"[{record['_PID']}]" if who != "kernel" and record.get("_PID") else ""
    return f"{_time(record)}{record.get('_HOSTNAME') or 'localhost'} {who or 'unknown'}{pid}: {record['MESSAGE']}"


def _time(record: dict[str, Any]) -> str:
    stamp = record.get("__REALTIME_TIMESTAMP", "")
    if "VERBOSE" in record:
        moment, zone = record["VERBOSE"].rsplit(" ", 1)
        return f"{moment.replace(' ', 'T')}{'+00:00' if zone in ('UTC', 'GMT') else ''} "
    if re.fullmatch("[0-9]{10,17}", stamp) and int(stamp) < 1 << 52:
        return datetime.fromtimestamp(int(stamp) / 1e6, timezone.utc).isoformat(timespec="microseconds") + " "
    return ""
