"""Frames around the lines of an output: logs, tools that run commands on many hosts, forums, Markdown, JSON."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence

from bench.accuracy.excerpts.excerpt import Change, Transformation, whole

_COLUMNS = re.compile(r" *\t[ \t]*| {2,}")


def _each(form: Callable[[int, str], str]) -> Change:
    return lambda lines: (form(number, line) for number, line in enumerate(lines))


def _clock(number: int) -> str:
    return f"{3 + number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}"


def _docker(number: int, line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"2026-11-21T{_clock(number)}.1Z"})


def _bullets(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"- {line}" if line.strip() else line for line in lines)


def _bold(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        bare = line.strip()
        yield line.replace(bare, f"**{bare}**", 1) if bare else line


def _some_bold(lines: Sequence[str]) -> Iterator[str]:
    """A person marks the value in which he is interested: every third line."""
    for number, line in enumerate(lines):
        words = line.split()
        mark = number % 3 == 1 and words and not set(words[-1]) & set('*_<>{}[]"')
        yield line[: line.rindex(words[-1])] + f"**{words[-1]}**" if mark else line


def _code(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"`{line}`" if line.strip() else line for line in lines)


def _table_of_lines(lines: Sequence[str]) -> Iterator[str]:
    yield from ("| output |", "| --- |")
    yield from (f"| {line.replace('|', chr(92) + '|')} |" for line in lines if line.strip())


def _table_of_columns(lines: Sequence[str]) -> Iterator[str]:
    """Rows of columns as a Markdown table. The other lines stay."""
    rows = [[cell.strip() for cell in _COLUMNS.split(line.rstrip().lstrip(" "))] for line in lines]
    inside = False
    for line, row in zip(lines, rows, strict=True):
        if len(row) < 3 or "|" in line or "---" in line or "===" in line:
            inside = False
            yield line
            continue
        yield f"| {' | '.join(row)} |"
        if not inside:
            yield "|" + " --- |" * len(row)
        inside = True


def _fence(lines: Sequence[str]) -> Iterator[str]:
    yield from ("Here is the output:", "", "```console", *lines, "```", "", "What is wrong with this machine?")


def _prose(lines: Sequence[str]) -> Iterator[str]:
    yield from ("Hello, since the last update the training is slow.", "This is what I see:", "", *lines, "", "Thanks!")


def _page(lines: Sequence[str]) -> Iterator[str]:
    yield from ("<html><body><pre>", *(html.escape(line, quote=False) for line in lines), "</pre></body></html>")


def _wiki(lines: Sequence[str]) -> Iterator[str]:
    yield from ("{noformat}", *lines, "{noformat}")


def _ansible(lines: Sequence[str]) -> Iterator[str]:
    yield from ("ok: [node1] => {", '    "out.stdout_lines": [')
    yield from (
        f"        {json.dumps(line)}{',' if number + 1 < len(lines) else ''}" for number, line in enumerate(lines)
    )
    yield from ("    ]", "}")


def _string(lines: Sequence[str]) -> Iterator[str]:
    yield json.dumps({"host": "node1", "rc": 0, "stdout": "\n".join(lines)})


def _watch(lines: Sequence[str]) -> Iterator[str]:
    yield from ("Every 2.0s: check                              node1: Sat Nov 21 03:04:05 2026", "", *lines)


FRAMES: tuple[Transformation, ...] = (
    whole("time, ISO", _each(lambda number, line: f"2026-11-21T{_clock(number)}.123456Z {line}")),
    whole("time in brackets", _each(lambda number, line: f"[2026-11-21 {_clock(number)}] {line}")),
    whole("time of day", _each(lambda number, line: f"{_clock(number)} {line}")),
    whole("time, ts(1)", _each(lambda number, line: f"Nov 21 {_clock(number)} {line}")),
    whole("syslog", _each(lambda number, line: f"Nov 21 {_clock(number)} node1 check[4242]: {line}")),
    whole("journal, ISO", _each(lambda n, line: f"2026-11-21T{_clock(n)}+0000 node1 check[4242]: {line}")),
    whole("log level", _each(lambda number, line: f"2026-11-21 {_clock(number)},123 - INFO - {line}")),
    whole("log level, bracketed", _each(lambda number, line: f"[2026-11-21 {_clock(number)},123][INFO] {line}")),
    whole("host", _each(lambda number, line: f"node1: {line}")),
    whole("host in brackets", _each(lambda number, line: f"[node1] {line}")),
    whole("host, ansible", _each(lambda number, line: f"node1 | {line}")),
    whole("mpirun --tag-output", _each(lambda number, line: f"[1,0]<stdout>:{line}")),
    whole("srun --label", _each(lambda number, line: f"0: {line}")),
    whole("kubectl --prefix", _each(lambda number, line: f"[pod/check-x7/main] {line}")),
    whole("docker json", _each(_docker)),
    whole("quote", _each(lambda number, line: f"> {line}")),
    whole("quote in a quote", _each(lambda number, line: f">> {line}")),
    whole("grep -n", _each(lambda number, line: f"{number + 1}:{line}")),
    whole("cat -n", _each(lambda number, line: f"{number + 1:6}\t{line}")),
    whole("indented code", _each(lambda number, line: f"    {line}")),
    whole("fence and prose", _fence),
    whole("prose", _prose),
    whole("list", _bullets, structured=False),
    whole("bold lines", _bold, structured=False),
    whole("bold values", _some_bold, structured=False),
    whole("inline code", _code, structured=False),
    whole("table of lines", _table_of_lines, structured=False),
    whole("table of columns", _table_of_columns, structured=False),
    whole("HTML", _page),
    whole("wiki", _wiki),
    whole("ansible lines", _ansible),
    whole("JSON string", _string),
    whole("watch(1)", _watch),
)
