"""Joins lines that a terminal or a mail program wrapped.

A terminal cuts each line at its width: no line is longer, and each line of this length continues on the next line. A
mail program cuts between words: the next word does not fit into the width. Whether an output is wrapped is not certain
from its form. So this is a proposal: the caller keeps it only if the readers read more from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .prefixes import layers

_NARROWEST, _WIDEST, _WIDEST_MAIL = 40, 400, 80  # columns
LONGEST = 1 << 16  # characters of a text from a terminal or a mail
_FEWEST, _SHARE = 2, 0.2  # different lines that are cut within a word, and their share: they show a wrapped text
_MANY = 0.8  # share of full lines above which the text is a table with rows of equal length
_EDGES, _OPENS = ("|", "+"), ("{", "[", "<")  # of a table; of JSON and XML


class Joined(NamedTuple):
    """The joined lines, and for each the number of its first line (from 0). `cut`: words are cut at the width."""

    text: str
    origin: list[int]
    cut: bool


def joined(text: str) -> Iterator[Joined]:
    """The text with its lines joined in each way in which it can have been wrapped."""
    lines = text.rstrip("\n").split("\n")
    width = max(map(len, lines))
    if not _NARROWEST <= width <= _WIDEST or len(lines) < 2:
        return
    if next(layers(lines), None):
        return  # a log or a launcher writes its prefix before each line, not before a part of a line
    full = [number for number, line in enumerate(lines[:-1]) if len(line) == width and lines[number + 1].strip()]
    if full and (len(full) < _MANY * len(lines) or text.lstrip().startswith(_OPENS)):
        cut = len({lines[number] for number in full if _is_cut(lines[number], lines[number + 1])})
        certain = cut >= _FEWEST and cut * 2 >= len(full) and cut >= _SHARE * len(lines)
        yield _join(lines, frozenset(full), "", certain)
    if width > _WIDEST_MAIL:
        return
    broken = [number for number, line in enumerate(lines[:-1]) if _does_not_fit(line, lines[number + 1], width)]
    if broken and broken != full:
        yield _join(lines, frozenset(broken), " ", False)


def _is_cut(line: str, following: str) -> bool:
    """Whether a word, or the row of a table with edges, continues on the next line."""
    row = line.lstrip().startswith(_EDGES) and following.rstrip().endswith(_EDGES)
    whole = line.endswith(_EDGES) or following.lstrip().startswith(("|  ", "| ", "+--"))
    return (line[-1].isalnum() and following[0].isalnum()) or (row and not whole)


def _does_not_fit(line: str, following: str, width: int) -> bool:
    """Whether the first word of the next line does not fit behind this line."""
    word = following.split(" ", 1)[0]
    return bool(word) and " " in line.strip() and len(line) + 1 + len(word) > width


def _join(lines: Sequence[str], continued: frozenset[int], between: str, cut: bool) -> Joined:
    texts, origin = [lines[0]], [0]
    for number, line in enumerate(lines[1:], 1):
        if number - 1 in continued:
            texts[-1] += between + line
        else:
            texts.append(line)
            origin.append(number)
    return Joined("\n".join(texts) + "\n", origin, cut)
