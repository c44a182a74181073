r"""Unfolds lines that are written as strings: a list of JSON strings, or one string with "\n" between the lines.

Ansible (stdout_lines and stdout of a result), JSON of agents and of log collectors, lists and strings of Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from .json_text import loads

_LITERAL = r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
_ITEM = re.compile(rf"[ \t]*(?:- )?(b?{_LITERAL}),?[ \t]*")
_STRING = re.compile(rf"\\.|({_LITERAL})")  # an escaped quote begins no string
# The output of a command as a value: Ansible, runners of jobs, collectors of logs, logfmt
_OUTPUT = re.compile(
    rf"(?:[\"'](?:stdout|stderr|output|log|message|msg|text)[\"'][ ]?:[ ]?|(?<=[ \t])(?:msg|message)=)({_LITERAL})"
)
_FEWEST = 2  # strings of a list


def unfolded(lines: Sequence[str]) -> tuple[list[str], list[int]] | None:
    """The lines, and for each the number of the line that it comes from (from 0). None: no line is a string."""
    items = _items(lines)
    if not items and not any("\\n" in line or _OUTPUT.search(line) for line in lines):
        return None
    found: list[tuple[str, int]] = []
    for number, line in enumerate(lines):
        inside = [items[number]] if number in items else list(_inside(line))
        found += [(one, number) for text in inside or [line] for one in text.rstrip("\r\n").split("\n")]
    texts = [text for text, _ in found]
    return None if texts == list(lines) else (texts, [number for _, number in found])


def is_item(line: str) -> bool:
    """Whether the line is a string of a list, the record of a log collector, or has an output of several lines as a
    value.
    """
    if _ITEM.fullmatch(line):
        return True
    outputs = _OUTPUT.findall(line)
    record = line.startswith("{") and line.rstrip().endswith("}")
    return bool(outputs) and (record or any("\\n" in literal for literal in outputs))


def _items(lines: Sequence[str]) -> dict[int, str]:
    """The strings that fill a line, by its number. A single one counts only behind the bracket of a list."""
    found = {number: item for number, line in enumerate(lines) if (item := _ITEM.fullmatch(line))}
    texts = {number: text for number, item in found.items() if (text := _text(item[1])) is not None}
    listed = any(number and lines[number - 1].rstrip().endswith("[") for number in texts)
    return texts if len(texts) >= _FEWEST or listed else {}


def _inside(line: str) -> Iterator[str]:
    """The strings within a line that are the output of a command."""
    named = [found[1] for found in _OUTPUT.finditer(line)]
    for literal in named or (filter(None, _STRING.findall(line)) if "\\n" in line else ()):
        text = _text(literal)
        if text is not None and (named or "\n" in text):
            yield text


def _text(literal: str) -> str | None:
    """The text of a string of JSON or Python."""
    try:
        strict = literal.startswith('"') and "\t" not in literal  # JSON has no tab within a string
        text = loads(literal) if strict else ast.literal_eval(literal)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    return text if isinstance(text, str) else None
