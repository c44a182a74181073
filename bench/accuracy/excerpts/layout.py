"""Changes of blanks, encodings and line ends, comments, and repeated outputs. Nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from bench.accuracy.excerpts.excerpt import Excerpt, Sample, Transformation, whole

_COMMENTS = ("  # this one?", "   <-- here", "  # expected", "  // hm", "  (!)")
_BRACKETS = (" (only here)", "  (bad!)")
_FOREIGN = ("Loading checkpoint shards: done", "step 100: loss 2.3141, 412.1 tokens/s/GPU", "WARNING: see the manual")


def _commented(lines: Sequence[str], marks: Sequence[str]) -> Iterator[str]:
    """A comment behind every third line that is not empty."""
    for number, line in enumerate(lines):
        yield f"{line}{marks[number // 3 % len(marks)]}" if line.strip() and number % 3 == 1 % len(lines) else line


def _wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """As a terminal of this width wraps the lines."""
    for line in lines:
        yield from (line[start : start + width] for start in range(0, max(len(line), 1), width))


def _word_wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """As mail programs wrap lines: between words."""
    for line in lines:
        rest = line
        while len(rest) > width and (at := rest.rfind(" ", 1, width)) > len(rest) - len(rest.lstrip()):
            yield rest[:at]
            rest = rest[at + 1 :]
        yield rest


def _mixed(lines: Sequence[str]) -> Iterator[str]:
    """Another program writes to the same terminal."""
    for number, line in enumerate(lines):
        if number % 4 == 2:
            yield _FOREIGN[number // 4 % len(_FOREIGN)]
        yield line


def _colored(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"\x1b[1;32m{line}\x1b[0m" if line.strip() else line for line in lines)


def _encoded(name: str, codec: str, mark: bytes = b"") -> Transformation:
    def make(sample: Sample, chance: Random) -> Iterator[Excerpt]:
        yield Excerpt((mark + sample.text.encode(codec),))

    return Transformation(name, "whole", make)


def _two_files(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    yield Excerpt((sample.text, sample.text))


def _paragraph_files(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    """Each paragraph as a file, the last one first."""
    paragraphs = [one for one in re.split(r"\n[ \t]*\n", sample.text) if one.strip()]
    if len(paragraphs) > 1 and not sample.structured:
        yield Excerpt(tuple(reversed(paragraphs)))


LAYOUTS: tuple[Transformation, ...] = (
    whole("# comments", lambda lines: _commented(lines, ("  # this one?",)), structured=False),
    whole("other comments", lambda lines: _commented(lines, _COMMENTS[1:]), structured=False),
    whole("remarks in brackets", lambda lines: _commented(lines, _BRACKETS), structured=False),
    whole("tabs expanded", lambda lines: (line.expandtabs(8) for line in lines)),
    whole("tabs to one blank", lambda lines: (line.replace("\t", " ") for line in lines)),
    whole("runs of blanks to one", lambda lines: (re.sub(r"(?<=\S)[ \t]+", " ", line) for line in lines)),
    whole("no indentation", lambda lines: (line.lstrip() for line in lines)),
    whole("blanks at the end", lambda lines: (f"{line}   " for line in lines)),
    whole("empty lines between", lambda lines: ("\n".join((line, "")) for line in lines)),
    whole("no empty lines", lambda lines: (line for line in lines if line.strip())),
    whole("no-break spaces", lambda lines: (line.replace(" ", "\xa0") for line in lines)),
    whole("colors", _colored),
    whole("CRLF", lambda lines: (f"{line}\r" for line in lines)),
    whole("wrapped at 80", lambda lines: _wrapped(lines, 80)),
    whole("wrapped at 60", lambda lines: _wrapped(lines, 60)),
    whole("wrapped between words", lambda lines: _word_wrapped(lines, 72)),
    whole("other lines in between", _mixed, structured=False),
    whole("twice", lambda lines: (*lines, *lines)),
    whole("twice with titles", lambda lines: ("Run 1:", *lines, "", "Run 2:", *lines)),
    whole("before and after", lambda lines: ("=== before ===", *lines, "=== after ===", *lines)),
    Transformation("two equal files", "whole", _two_files),
    Transformation("paragraphs as files, reversed", "whole", _paragraph_files),
    _encoded("UTF-8 with mark", "utf-8", b"\xef\xbb\xbf"),
    _encoded("UTF-16", "utf-16-le", b"\xff\xfe"),
    _encoded("UTF-16, big endian", "utf-16-be", b"\xfe\xff"),
    _encoded("UTF-16 without mark", "utf-16-le"),
)
