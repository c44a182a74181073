"""Random changes of texts: the usual damage to outputs of tools, and worse.

Each change uses only the given generator, so equal generators give equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random

MOST_LINES, HEAD_LINES = 60, 8  # lines taken from a sample, which can be a file of a megabyte
MOST = 60_000  # characters
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WORD = re.compile(r"\S+")
NUMBERS = (
    "",
    "0",
    "-1",
    "-0.0",
    "1",
    "00",
    "65536",
    "4294967296",
    "18446744073709551616",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "NaN",
    "1.2.3",
    ".",
    "..",
    "1.",
    ".5",
    "0x",
    "0xffffffffffffffffff",
    "N/A",
    "[N/A]",
    "ERR!",
    "ff",
    "\u0663",
    "\u00b2",
    "\uff11\uff12",
    "\u0967",
    "1_0",
    "+1",
    "1,5",
    "- 1",
)
PIECES = (
    "\0",
    "\r",
    "\r\n",
    "\n",
    "\n\n",
    "\t",
    " ",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1b[31m",
    "\x1b",
    "\x1b]0;",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\U0001f600",
    "\u0130",
    "\u1e9e",
    "\xe9",
    "\x7f",
    "\ud7ff",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "</",
    "/>",
    '"',
    "'",
    "\\",
    "\\u0000",
    '"\\ud800"',
    "&",
    "&lt;",
    "&#0;",
    "<!--",
    "]]>",
    ":",
    ",",
    ";",
    "|",
    "=",
    "-",
    "+",
    ".",
    "%",
    "#",
    "$ ",
    "```",
    "null",
    "true",
    "NaN",
    "1e400",
    "<!DOCTYPE a>",
)
_PREFIXES = (
    "    ",
    "\t",
    "> ",
    "[1,0]<stdout>:",
    "0: ",
    "node1: ",
    "| ",
    "  " * 40,
    "\x1b[0m",
    "+",
    "Nov 21 03:04:05 n1 x[1]: ",
)
_NESTED = ("[", "{", '{"a":', "<a>", "(", '[{"children":', "  ", "\\", "<object>")


def changed(random: Random, samples: Sequence[str], others: Sequence[str]) -> str:
    """A changed text of one or several samples, sometimes with a piece of another tool's output."""
    text = window(random, random.choice(samples))
    for _ in range(1 + int(random.expovariate(0.7))):
        change = random.choices(_CHANGES, _WEIGHTS)[0]
        text = change(random, text, others if random.random() < 0.1 else samples)[:MOST]
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def window(random: Random, text: str) -> str:
    """The text; for a long one its first lines and some lines in one piece."""
    lines = _split(text)
    if len(lines) <= MOST_LINES:
        return text
    head, start = random.randint(0, HEAD_LINES), random.randrange(len(lines))
    return "\n".join(lines[:head] + lines[start : start + random.randint(1, MOST_LINES)])


@lru_cache(1000)
def _split(text: str) -> list[str]:
    return text.split("\n")


def _cut(random: Random, text: str, samples: Sequence[str]) -> str:
    """Remove the end or the beginning."""
    place = random.randint(0, len(text))
    return text[:place] if random.random() < 0.7 else text[place:]


def _lines(random: Random, text: str, samples: Sequence[str]) -> str:
    """Remove, repeat or move lines."""
    lines = text.split("\n")
    a = random.randrange(len(lines))
    b = min(len(lines), a + 1 + int(random.expovariate(0.5)))
    kind = random.randrange(4)
    if kind == 0:
        del lines[a:b]
    elif kind == 1:
        lines[a:a] = lines[a:b] * random.choice((1, 1, 2, 3, 40))
    elif kind == 2:
        c = random.randrange(len(lines))
        lines[a], lines[c] = lines[c], lines[a]
    else:
        piece = lines[a:b]
        random.shuffle(piece)
        lines[a:b] = piece
    return "\n".join(lines)


def _spliced(random: Random, text: str, samples: Sequence[str]) -> str:
    """Join the beginning of one text and the end of another, or insert lines of another."""
    other = window(random, random.choice(samples))
    if random.random() < 0.5:
        return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]
    mine, theirs = text.split("\n"), other.split("\n")
    a, b = random.randint(0, len(mine)), random.randrange(len(theirs))
    mine[a:a] = theirs[b : b + random.randint(1, 5)]
    return "\n".join(mine)


def _number(random: Random, text: str, samples: Sequence[str]) -> str:
    """Make a number huge, negative, missing or invalid."""
    return _replaced(random, text, _NUMBER, random.choice(NUMBERS))


def _word(random: Random, text: str, samples: Sequence[str]) -> str:
    """Replace a word by a word of another line or by nothing."""
    words = _WORD.findall(window(random, random.choice(samples)))
    return _replaced(random, text, _WORD, random.choice(words) if words and random.random() < 0.8 else "")


def _replaced(random: Random, text: str, what: re.Pattern[str], new: str) -> str:
    found = list(what.finditer(text))
    if not found:
        return text + new
    one = random.choice(found)
    return text[: one.start()] + new + text[one.end() :]


def _letter(random: Random, text: str, samples: Sequence[str]) -> str:
    """Remove, repeat or replace a character, or insert an unusual mark."""
    at = random.randint(0, len(text))
    new = random.choice(
        (random.choice(PIECES), random.choice(PIECES), chr(random.randrange(32, 127)), text[at : at + 1] * 2)
    )
    return text[:at] + new + text[at + random.randint(0, 2) :]


def _column(random: Random, text: str, samples: Sequence[str]) -> str:
    """Remove a column from each line: a range of characters, or a word."""
    place, width = random.randrange(12), random.randint(1, 12)
    if random.random() < 0.5:
        return "\n".join(line[: place * 6] + line[place * 6 + width :] for line in text.split("\n"))
    mark = random.choice((" ", ",", "\t", "|", ":"))
    rows = [line.split(mark) for line in text.split("\n")]
    return "\n".join(mark.join((*row[:place], *row[place + 1 :])) for row in rows)


def _prefixed(random: Random, text: str, samples: Sequence[str]) -> str:
    """Put a prefix before each line, or join or strip lines."""
    prefix = random.choice((*_PREFIXES, None, "\n"))
    if prefix is None:
        return "\n".join(map(str.strip, text.split("\n")))
    return text.replace("\n", random.choice(("", " ", "\r\n")) if prefix == "\n" else f"\n{prefix}")


def _long(random: Random, text: str, samples: Sequence[str]) -> str:
    """Repeat a piece of a line many times: lines of many thousand characters."""
    at = random.randint(0, len(text))
    piece = text[at : at + random.randint(1, 12)].replace("\n", " ") or " "
    return text[:at] + piece * random.choice((50, 500, 3000)) + text[at:]


def _nested(random: Random, text: str, samples: Sequence[str]) -> str:
    """Brackets in brackets."""
    at = random.randint(0, len(text))
    return text[:at] + random.choice(_NESTED) * random.choice((10, 100, 3000)) + text[at:]


_Change = Callable[[Random, str, Sequence[str]], str]
_CHANGES: tuple[_Change, ...] = (_cut, _lines, _spliced, _number, _word, _letter, _column, _prefixed, _long, _nested)
_WEIGHTS = (10, 20, 10, 22, 14, 22, 6, 4, 1, 1)
