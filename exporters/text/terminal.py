"""Lines for a terminal: escape control characters, wrap to a width, and colour."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias
from unicodedata import east_asian_width

WIDTH = 98  # columns of a report: less than 100, so that a line fits into a mail and beside a prompt
Paint: TypeAlias = Callable[[str, str], str]  # (text, style) -> text

# Select Graphic Rendition, ECMA-48 8.3.117: the eight basic colours, which every terminal has.
_STYLES = {
    "failed": "1;31",
    "critical": "1;31",
    "degraded": "1;33",
    "warning": "1;33",
    "unknown": "1;35",
    "ok": "1;32",
    "info": "1;36",
    "slower": "33",
    "dim": "2",
    "bold": "1",
}

_NARROWEST = 40  # columns; narrower text is not readable
_most: ContextVar[int | None] = ContextVar("_most", default=None)  # columns of the terminal
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]i?[Bb](?:/s)?|GT/s|[MG]Hz|W|s|°C)(?![\w/]))")


def painter(colour: bool) -> Paint:
    """A function (text, style) -> text that adds the style; without `colour` it returns the text unchanged."""
    if not colour:
        return lambda text, style: text
    return lambda text, style: f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def safe(text: str) -> str:
    """One line without control characters: white space becomes one blank, unprintable characters are escaped.

    Escape sequences could hide or forge lines of a report, and direction marks (U+202E) could reverse them.
    """
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def short(text: str, most: int | None) -> str:
    """The safe text, cut to `most` characters unless `most` is None."""
    line = safe(text)
    return line if most is None or len(line) <= most else f"{line[: most - 3]}..."


def fitted(text: str, columns: int) -> str:
    """The text, cut to so many columns."""
    if cells(text) <= columns:
        return text
    while cells(text) > columns - 3:
        text = text[: -max(1, (cells(text) - columns + 3) // 2)]
    return f"{text}..."


@contextmanager
def within(columns: int | None) -> Iterator[None]:
    """Break lines at this width during the block, if it is less than their own. None: no limit."""
    before = _most.set(None if columns is None else max(columns, _NARROWEST))
    try:
        yield
    finally:
        _most.reset(before)


def limited(width: int) -> int:
    """The width of lines whose own width is `width`, in this terminal."""
    most = _most.get()
    return width if most is None else min(width, most)


def cells(text: str) -> int:
    """The width of a text in columns: two for each wide character (Unicode Standard Annex 11)."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at blanks (textwrap also breaks at hyphens). Longer words are split.

    A number and its unit stay together.
    """
    width = limited(width)
    lines = [""]
    for word in _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text).split(" "):
        for piece in _pieces(word, width):
            joined = f"{lines[-1]} {piece}" if lines[-1] else piece
            if cells(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def hanging(first: str, text: str, width: int, indent: int | None = None) -> Iterator[str]:
    """`first` and the text in one line. Further lines are indented to the start of the text, or by `indent` columns.

    The whole text is below it if a word does not fit behind `first`, or if the text is longer than the rest of the line
    and that is less than half of the width.
    """
    width = limited(width)
    column = cells(first) if indent is None else indent
    room = width - max(column, cells(first))
    narrow = room < width / 2 and cells(text) > room
    if column < cells(first) and (narrow or max(map(cells, text.split(" "))) > room):
        yield first.rstrip()
        yield from (f"{' ' * column}{line}" for line in wrap(text, width - column))
        return
    lines = wrap(text, room)
    yield f"{first}{lines[0]}".rstrip()
    for line in lines[1:]:
        yield f"{' ' * column}{line}"


def _pieces(word: str, width: int) -> Iterator[str]:
    if cells(word) <= width:
        yield word
        return
    piece, taken = "", 0
    for character in word:
        if piece and taken + cells(character) > width:
            yield piece
            piece, taken = "", 0
        piece += character
        taken += cells(character)
    yield piece
