"""The lines of an output in what viewers export: tables of logs as CSV (Kibana, Grafana, CloudWatch), journals as
JSON, and diffs of files.

The number of lines does not change: each line stays in its place, and lines of the frame become empty.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from .journal_records import journal_lines

_MESSAGE = ("message", "@message", "line", "log", "msg", "text", "body", "content", "_raw", "textpayload")
_OTHERS = re.compile(r"@?_?(?:time(?:stamp)?|date|host(?:name)?|source|container|pod|stream|service|level|severity)s?")
_HEADING = re.compile(r'"?[@\w. -]{1,40}"?(?:,"?[@\w. -]{1,40}"?){1,20}')
_HUNK = re.compile(r"@@ -[0-9]{1,9}(?:,[0-9]{1,9})? \+[0-9]{1,9}(?:,[0-9]{1,9})? @@")
_FILE = re.compile(r"(?:diff|index|---|\+\+\+|(?:new|deleted) file mode|old mode|new mode|similarity|rename) ")


def exported(text: str) -> str:
    """The text with the lines of the output in place of the rows of a table of logs, or of a diff."""
    first, _, rest = text.partition("\n")
    if first.startswith("{") and '"MESSAGE"' in first:
        return "\n".join(journal_lines(text.split("\n")))
    if rest and _HEADING.fullmatch(first) and (column := _column(first)) is not None:
        return _cells(text.split("\n"), column) or text
    return _of_diff(text) if "@@ -" in text else text


def _column(heading: str) -> int | None:
    """The number of the column with the messages. None: the line is not the heading of a table of logs."""
    names = [name.strip().lower() for name in next(csv.reader([heading]))]
    if not any(map(_OTHERS.fullmatch, names)):
        return None
    return next((number for number, name in enumerate(names) if name in _MESSAGE), None)


def _cells(lines: Sequence[str], column: int) -> str | None:
    """The messages, each in the line in which its row begins. None: the rows do not have the columns of the heading."""
    found = [""] * len(lines)
    rows, begin = csv.reader(f"{line}\n" for line in lines), 0
    width = 0
    try:
        for row in rows:
            width = width or len(row)
            if row and len(row) != width:
                return None
            if row and begin:
                for number, one in enumerate(row[column].split("\n")):
                    found[min(begin + number, len(lines) - 1)] = one
            begin = rows.line_num
    except csv.Error:  # a cell of more than 128 kB
        return None
    return "\n".join(found)


def _of_diff(text: str) -> str:
    """The new and the unchanged lines of a diff. Removed lines stay as they are."""
    lines, inside = text.split("\n"), False
    for number, line in enumerate(lines):
        if _HUNK.match(line):
            lines[number], inside = "", True
        elif _FILE.match(line) and not (inside and line.startswith(("--- ", "+++ ")) and not _is_file(lines, number)):
            lines[number], inside = "", False
        elif inside and line[:1] in ("+", " "):
            lines[number] = line[1:]
        else:
            inside = inside and line[:1] in ("-", "\\", "")
    return "\n".join(lines)


def _is_file(lines: Sequence[str], number: int) -> bool:
    """Whether a hunk follows "--- FILE" or "+++ FILE"."""
    return any(_HUNK.match(line) for line in lines[number + 1 : number + 3])
