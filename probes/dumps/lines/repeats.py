"""An output that a person or `watch` took several times, without a change: it says what one copy says."""

from __future__ import annotations

from .shapes import shape

_FEWEST = 2  # lines of an output: a single line can be of several devices
_MOST = 64  # copies
_RUNS = ("{", "[")  # JSON: each document is a run of its own, and two runs can have equal results


def once(text: str) -> str:
    """The first copy, if the text is nothing but equal copies, with or without empty lines between them.

    A copy is a whole output: it begins with a line unlike all others of it. Equal rows are of several devices or runs.
    Equal lines of a log are events: the caller keeps them.
    """
    if text.lstrip().startswith(_RUNS):
        return text
    lines = [line for line in text.split("\n") if line.strip()]
    for copies in range(2, min(_MOST, len(lines) // _FEWEST) + 1):
        length, rest = divmod(len(lines), copies)
        if not rest and lines == lines[:length] * copies and shape(lines[0]) not in map(shape, lines[1:length]):
            return _first(text, length)
    return text


def _first(text: str, length: int) -> str:
    """The text up to this number of lines, without counting empty ones."""
    end = -1
    for _ in range(length):
        end = text.index("\n", end + 1)
        while not text[text.rfind("\n", 0, end) + 1 : end].strip():
            end = text.index("\n", end + 1)
    return text[: end + 1]
