"""Damage of an output: lines and characters that are missing, wrong, or of another machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from bench.accuracy.excerpts.excerpt import Excerpt, Make, Sample, Transformation

_TRIES = 12  # excerpts of one sample for each kind of damage
_BLANKS = re.compile(r"(?<=\S)[ \t]+(?=\S)")


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _rows(sample: Sample, chance: Random) -> list[int]:
    """Some lines that are not empty."""
    rows = [row for row, line in enumerate(sample.lines) if line.strip()]
    return rows if len(rows) <= _TRIES else sorted(chance.sample(rows, _TRIES))


def _with_line(sample: Sample, row: int, *new: str) -> Excerpt:
    lines = sample.lines
    return Excerpt((_text([*lines[:row], *new, *lines[row + 1 :]]),), changed=(lines[row], *new))


def _deleted(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    yield from (_with_line(sample, row) for row in _rows(sample, chance) if len(sample.lines) > 1)


def _character(pattern: str, new: str, digits: bool = False) -> Make:
    """One character that matches the pattern becomes one of `new`."""

    def make(sample: Sample, chance: Random) -> Iterator[Excerpt]:
        for row in _rows(sample, chance):
            line = sample.lines[row]
            places = [found.start() for found in re.finditer(pattern, line)]
            if places:
                at = chance.choice(places)
                other = chance.choice([one for one in new if one != line[at]])
                yield replace(_with_line(sample, row, line[:at] + other + line[at + 1 :]), digits=digits)

    return make


def _lost_character(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    for row in _rows(sample, chance):
        line = sample.lines[row]
        at = chance.randrange(len(line))
        yield replace(_with_line(sample, row, line[:at] + line[at + 1 :]), digits=line[at].isdigit())


def _lost_word(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    for row in _rows(sample, chance):
        line = sample.lines[row]
        word = chance.choice(list(re.finditer(r"\S+", line)))
        yield _with_line(sample, row, line[: word.start()] + line[word.end() :])


def _cut_line(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    for row in _rows(sample, chance):
        line = sample.lines[row]
        yield _with_line(sample, row, line[: chance.randrange(len(line))])


def _cut_end(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    for row in _rows(sample, chance):
        lines = sample.lines
        rest = lines[row][: chance.randrange(len(lines[row]))]
        yield Excerpt((_text(lines[:row]) + rest,), changed=(*lines[row:], rest))


def _fused(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    """Two columns without the blank between them."""
    for row in _rows(sample, chance):
        line = sample.lines[row]
        if gaps := list(_BLANKS.finditer(line)):
            gap = chance.choice(gaps)
            yield _with_line(sample, row, line[: gap.start()] + line[gap.end() :])


def _joined(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    """Two lines without the line end between them."""
    lines = sample.lines
    for row in _rows(sample, chance):
        if row + 1 < len(lines):
            new = lines[row] + lines[row + 1]
            yield Excerpt((_text([*lines[:row], new, *lines[row + 2 :]]),), changed=(*lines[row : row + 2], new))


def _swapped(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    lines = sample.lines
    for row in _rows(sample, chance):
        if row + 1 < len(lines):
            pair = (lines[row + 1], lines[row])
            yield Excerpt((_text([*lines[:row], *pair, *lines[row + 2 :]]),), changed=pair)


def _repeated(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    lines = sample.lines
    yield from (_with_line(sample, row, lines[row], lines[row]) for row in _rows(sample, chance))


def _splice(sample: Sample, chance: Random) -> Iterator[Excerpt]:
    """The beginning of this output and the end of another one of the same tool."""
    for other in chance.sample(sample.others, min(len(sample.others), 4)):
        mine, theirs = sample.lines, other.rstrip("\n").split("\n")
        cut, start = chance.randrange(1, len(mine) + 1), chance.randrange(len(theirs))
        text = _text([*mine[:cut], *theirs[start:]])
        yield Excerpt((text,), other=other, changed=(*mine[cut:], *theirs[:start]))


DAMAGE: tuple[Transformation, ...] = (
    Transformation("a line deleted", "damage", _deleted),
    Transformation("a letter changed", "damage", _character("[A-Za-z]", "qzQ9#")),
    Transformation("a digit changed", "damage", _character("[0-9]", "0123456789", digits=True)),
    Transformation("a digit to a letter", "damage", _character("[0-9]", "OlqZ")),
    Transformation("a character lost", "damage", _lost_character),
    Transformation("a word lost", "damage", _lost_word),
    Transformation("a line cut", "damage", _cut_line),
    Transformation("the end cut", "damage", _cut_end),
    Transformation("columns fused", "damage", _fused),
    Transformation("lines joined", "damage", _joined),
    Transformation("lines swapped", "damage", _swapped),
    Transformation("a line repeated", "damage", _repeated),
    Transformation("two machines spliced", "damage", _splice),
)
