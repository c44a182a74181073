"""Parts of an output: without its header, a paragraph, a line, a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeAlias

from bench.accuracy.excerpts.excerpt import Excerpt, Sample, Transformation

_MOST = 60  # excerpts of one sample
Select: TypeAlias = Callable[[Sequence[str]], Iterable[Sequence[int]]]


def _selected(name: str, select: Select, gap: str | None = None) -> Transformation:
    """Excerpts of some lines. `gap` replaces a run of missing lines; None: nothing does."""

    def make(sample: Sample, chance: Random) -> Iterator[Excerpt]:
        lines = sample.lines
        chosen = [rows for rows in select(lines) if rows and len(rows) < len(lines)]
        for rows in chosen if len(chosen) <= _MOST else chance.sample(chosen, _MOST):
            if any(lines[row].strip() for row in rows):
                yield Excerpt(("\n".join(_written(lines, rows, gap)) + "\n",), frozenset(rows))

    return Transformation(name, "part", make)


def _written(lines: Sequence[str], rows: Sequence[int], gap: str | None) -> Iterator[str]:
    for before, row in zip((None, *rows), rows, strict=False):
        if gap is not None and before is not None and row > before + 1:
            yield gap
        yield lines[row]


def _paragraphs(lines: Sequence[str]) -> list[list[int]]:
    found: list[list[int]] = [[]]
    for row, line in enumerate(lines):
        if line.strip():
            found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [one for one in found if one]


def _without_middle(lines: Sequence[str]) -> Iterator[list[int]]:
    size = len(lines)
    if size >= 6:
        yield [*range(size // 3), *range(size - size // 3, size)]


def _without_two_gaps(lines: Sequence[str]) -> Iterator[list[int]]:
    if len(lines) >= 10:
        yield [row for row in range(len(lines)) if row % 5 != 3 or row in (0, len(lines) - 1)]


def _each_line(lines: Sequence[str]) -> Iterator[list[int]]:
    yield from ([row] for row, line in enumerate(lines) if line.strip())


def _words_in(lines: Sequence[str]) -> Iterator[list[int]]:
    """As grep for the first word of each line does."""
    words = dict.fromkeys(line.split()[0] for line in lines if line.split())
    yield from ([row for row, line in enumerate(lines) if word in line.split()] for word in words)


PIECES: tuple[Transformation, ...] = (
    _selected("without the first line", lambda lines: [range(1, len(lines))]),
    _selected("without three lines", lambda lines: [range(3, len(lines))]),
    _selected("without the first paragraph", lambda lines: [range(_paragraphs(lines)[0][-1] + 1, len(lines))]),
    _selected("each paragraph", _paragraphs),
    _selected("each line", _each_line),
    _selected("each two lines", lambda lines: ([row, row + 1] for row in range(len(lines) - 1))),
    _selected("each five lines", lambda lines: (range(row, row + 5) for row in range(0, len(lines) - 4, 3))),
    _selected("first half", lambda lines: [range(len(lines) // 2)]),
    _selected("second half", lambda lines: [range(len(lines) // 2, len(lines))]),
    _selected("last ten lines", lambda lines: [range(max(0, len(lines) - 10), len(lines))]),
    _selected("gap '...'", _without_middle, "..."),
    _selected("gap '[...]'", _without_middle, "[...]"),
    _selected("gap with words", _without_middle, "<snip> many lines </snip>"),
    _selected("gap, silent", _without_middle),
    _selected("several gaps '...'", _without_two_gaps, "   ..."),
    _selected("grep", _words_in),
)
