"""Outputs as terminals, editors, chats, mails, log collectors and viewers of logs export them. Nothing is lost, but for
lines that end in "…".
"""

from __future__ import annotations

import csv
import gzip
import html
import io
import json
import quopri
from collections.abc import Callable, Iterator, Sequence
from random import Random

from bench.accuracy.excerpts.excerpt import Change, Excerpt, Sample, Transformation, whole

_DAY = "2026-11-21"
_WIDTH = 72  # columns of a terminal that cuts lines


def _clock(number: int) -> str:
    return f"{3 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}"


def _each(form: Callable[[int, str], str]) -> Change:
    return lambda lines: (form(number, line) for number, line in enumerate(lines))


def _mail(lines: Sequence[str]) -> Iterator[str]:
    yield from ("Thanks, this is what I get now:", "", "On Sat, Nov 21, 2026 at 3:04 AM Ann <ann@example.org> wrote:")
    yield from (f"> {line}" if line else ">" for line in lines)
    yield from ("", "--", "Ann")


def _quoted_printable(lines: Sequence[str]) -> Iterator[str]:
    """As mail archives show the source of a mail: RFC 2045, 6.7."""
    yield from quopri.encodestring("\n".join(lines).encode()).decode().split("\n")


def _chat(lines: Sequence[str]) -> Iterator[str]:
    yield from ("Ann  3:04 PM", "can somebody look at this?", *lines, ":eyes: 2", "Bob  3:09 PM", "one moment")


def _entities(lines: Sequence[str]) -> Iterator[str]:
    """As editors of web pages write blanks and signs."""
    yield from (html.escape(line).replace("  ", "&nbsp;&nbsp;").replace("\t", "&nbsp;&nbsp;") for line in lines)


def _smart(lines: Sequence[str]) -> Iterator[str]:
    """As word processors replace quotation marks: the opening and the closing one differ."""
    for line in lines:
        parts = line.split('"')
        yield "".join(f"{'“' if number % 2 else '”'}{part}" if number else part for number, part in enumerate(parts))


def _zero_width(lines: Sequence[str]) -> Iterator[str]:
    """As chats put them at the beginning and the end of lines."""
    yield from (f"\u200b{line}\u200b" if number % 2 else f"\ufeff{line}\u2060" for number, line in enumerate(lines))


def _typescript(lines: Sequence[str]) -> Iterator[str]:
    """The file of script(1), with what the shell sends to the terminal and a word that was typed again."""
    yield f'Script started on {_DAY} 03:04:05+00:00 [TERM="xterm-256color" TTY="/dev/pts/1" COLUMNS="180" LINES="50"]'
    yield "\x1b[?2004h\x1b]0;ann@node1: ~\x07ann@node1:~$ chxck\x08\x1b[K\x08\x1b[K\x08\x1b[Keck\r"
    yield from (f"\x1b[?2004l{line}\r" if not number else f"{line}\r" for number, line in enumerate(lines))
    yield from ("\x1b[?2004h\x1b]0;ann@node1: ~\x07ann@node1:~$ exit\r", "exit\r", f"Script done on {_DAY} 03:05:05")


def _box(lines: Sequence[str], edges: str) -> Iterator[str]:
    """A window with a frame. `edges`: two corners above, two below, horizontal, vertical."""
    width = max(map(len, lines))
    yield f"{edges[0]}{edges[4] * (width + 2)}{edges[1]}"
    yield from (f"{edges[5]} {line:{width}} {edges[5]}" for line in lines)
    yield f"{edges[2]}{edges[4] * (width + 2)}{edges[3]}"


def _collector(number: int, line: str) -> str:
    return json.dumps({"@timestamp": f"{_DAY}T{_clock(number)}.000Z", "host": {"name": "node1"}, "message": line})


def _fluent(number: int, line: str) -> str:
    pod = {"pod_name": "check-x7", "container_name": "main"}
    return json.dumps({"log": f"{line}\n", "time": f"{_DAY}T{_clock(number)}.1Z", "kubernetes": pod})


def _journal(number: int, line: str) -> str:
    stamp = str(1795230000000000 + number * 1000000)
    names = {"_HOSTNAME": "node1", "SYSLOG_IDENTIFIER": "check", "_PID": "4242", "PRIORITY": "6"}
    return json.dumps({"__REALTIME_TIMESTAMP": stamp, **names, "MESSAGE": line})


def _of_cloud(lines: Sequence[str]) -> Iterator[str]:
    """One record of a log collector that has the whole output."""
    yield json.dumps({"timestamp": 1795230000000, "severity": "INFO", "message": "\n".join(lines) + "\n"})


def _csv(lines: Sequence[str], quoted: bool) -> Iterator[str]:
    """The table of a log viewer: one row per line of the log."""
    text = io.StringIO()
    rows = csv.writer(text, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, lineterminator="\n")
    rows.writerow(("Time", "Host", "Message"))
    rows.writerows((f"{_DAY}T{_clock(number)}.000Z", "node1", line) for number, line in enumerate(lines))
    yield from text.getvalue().rstrip("\n").split("\n")


def _diff(lines: Sequence[str]) -> Iterator[str]:
    yield from ("diff --git a/out.txt b/out.txt", "new file mode 100644", "--- /dev/null", "+++ b/out.txt")
    yield f"@@ -0,0 +1,{len(lines)} @@"
    yield from (f"+{line}" for line in lines)


def _yaml(lines: Sequence[str]) -> Iterator[str]:
    yield from ("host: node1", "rc: 0", "stdout: |", *(f"  {line}" if line else "" for line in lines), "changed: false")


def _yaml_list(lines: Sequence[str]) -> Iterator[str]:
    yield from ("results:", "  - name: check", "    output: |-", *(f"      {line}" if line else "" for line in lines))


def _clush(lines: Sequence[str]) -> Iterator[str]:
    yield from ("---------------", "node1", "---------------", *lines)


def _later(lines: Sequence[str]) -> Iterator[str]:
    """The same command again, each time below the date."""
    yield from (f"{_DAY} 03:04:05", *lines, "", f"{_DAY} 03:05:05", *lines)


def _mojibake(lines: Sequence[str]) -> Iterator[str]:
    """UTF-8 that a program took for Windows-1252."""
    yield from (line.encode().decode("cp1252", "replace") if not line.isascii() else line for line in lines)


def _single(name: str, change: Callable[[Sample], str | bytes]) -> Transformation:
    def make(sample: Sample, chance: Random) -> Iterator[Excerpt]:
        yield Excerpt((change(sample),))

    return Transformation(name, "whole", make)


def _cut_right(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    """As a pager or a viewer shows long lines."""
    lines = [f"{line[: _WIDTH - 1]}…" if len(line) > _WIDTH else line for line in sample.lines]
    pairs = list(zip(sample.lines, lines, strict=True))
    if changed := tuple(one for before, after in pairs if before != after for one in (before, after)):
        yield Excerpt(("\n".join(lines) + "\n",), changed=changed)


EXPORTS: tuple[Transformation, ...] = (
    whole("quote in a quote, with blanks", _each(lambda number, line: f"> > {line}")),
    whole("mail", _mail),
    whole("mail, quoted-printable", _quoted_printable),
    whole("chat", _chat),
    whole("HTML entities", _entities),
    whole("smart quotes", _smart),
    whole("zero-width characters", _zero_width),
    whole("typescript", _typescript),
    whole("numbers of vim", _each(lambda number, line: f"{number + 1:3} {line}")),
    whole("numbers of bat", _each(lambda number, line: f"{number + 1:4}   │ {line}")),
    whole("box of lines", lambda lines: _box(lines, "┌┐└┘─│")),
    whole("box of signs", lambda lines: _box(lines, "++++-|"), structured=False),
    whole("JSON lines, message", _each(_collector)),
    whole("JSON lines, log", _each(_fluent)),
    whole("JSON lines, journal", _each(_journal)),
    whole("JSON record", _of_cloud),
    whole("CSV", lambda lines: _csv(lines, quoted=False)),
    whole("CSV, quoted", lambda lines: _csv(lines, quoted=True)),
    whole("diff", _diff),
    whole("YAML", _yaml),
    whole("YAML list", _yaml_list),
    whole("host in capitals", _each(lambda number, line: f"DGX-A17: {line}")),
    whole("host and tab", _each(lambda number, line: f"node1\t{line}")),
    whole("clush -b", _clush),
    whole("salt", lambda lines: ("node1:", *(f"    {line}" for line in lines))),
    whole("aws logs tail", _each(lambda number, line: f"{_DAY}T{_clock(number)}.123000+00:00 job/main/4f5a {line}")),
    whole("logcli", _each(lambda number, line: f'{_DAY}T{_clock(number)}Z {{app="check", node="node1"}} {line}')),
    whole("twice, at two times", _later),
    whole("UTF-8 as Windows-1252", _mojibake),
    _single("CR without LF", lambda sample: sample.text.replace("\n", "\r").encode()),
    _single("CR CR LF", lambda sample: sample.text.replace("\n", "\r\r\n")),
    _single("bytes of Python", lambda sample: f"{sample.text.encode()!r}\n"),
    _single("gzip", lambda sample: gzip.compress(sample.text.encode(), mtime=0)),
    Transformation("right side cut", "damage", _cut_right),
)
