"""Measured rates of one flow by message size, with the expected range: a curve over a band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2

from msgspec import Struct

from ...models.facts.units import as_size
from ...models.report import Level, Report
from ..text.vocabulary import counted
from .shapes import SMALL, Drawing, Label, Line, Rectangle, text_width

_WIDTH, _HEIGHT = 680.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 30.0, 22.0, 34.0  # margins
_FEWEST = 3  # sizes of a curve
_STEPS = 4  # of the vertical axis
_POINT = 6.0  # pixels of a measured point


class Curve(Struct, frozen=True):
    """A flow and its drawing."""

    title: str
    about: str
    drawing: Drawing


def curves_of(report: Report) -> Iterator[Curve]:
    """One curve per flow that was measured with several message sizes."""
    for levels in by_size(report):
        about = (
            "The band is the expected range."
            if any(level.expected for level in levels)
            else "The expected range is not known."
        )
        yield Curve(f"{_flow(levels[0])} by message size", f"GB/s. {about}", _drawn(levels))


def by_size(report: Report) -> Iterator[list[Level]]:
    """The levels of each flow that was measured with several message sizes, the smallest size first."""
    groups: dict[tuple[object, ...], dict[int, Level]] = {}
    for level in report.levels:
        if level.size and level.observed is not None:
            groups.setdefault((level.op, level.ends, level.via, level.beside), {})[level.size] = level
    for sizes in groups.values():
        if len(sizes) >= _FEWEST:
            yield [sizes[size] for size in sorted(sizes)]


def _flow(level: Level) -> str:
    many = f" of {counted(len(level.ends), 'rank')}" if len(level.ends) > 2 else f" {level.flow.subject}"
    return f"{level.op}{many}{f', {level.via}' if level.via else ''}"


def _drawn(levels: Sequence[Level]) -> Drawing:
    """Logarithmic sizes to the right, rates in GB/s from zero upwards."""
    first, last = (log2(level.size or 1) for level in (levels[0], levels[-1]))
    highest = max(max([level.observed or 0.0, *(one.high for one in level.expected[:1])]) for level in levels) or 1.0

    def place(level: Level, rate: float) -> tuple[float, float]:
        right = (log2(level.size or 1) - first) / (last - first)
        up = rate / highest
        inner = _HEIGHT - _TOP - _BOTTOM
        return _LEFT + right * (_WIDTH - _LEFT - _RIGHT), _TOP + (1 - up) * inner

    known = [(level, level.expected[0]) for level in levels if level.expected]
    band = [place(level, one.high) for level, one in known] + [place(level, one.low) for level, one in known[::-1]]
    points = [(level, *place(level, level.observed or 0.0)) for level in levels]
    lines = [Line(((_LEFT, y), (_WIDTH - _RIGHT, y)), 1, 0, "grid") for y, _ in _marks(highest)]
    lines += [Line(tuple(band), 1, 0, "band")] if len(known) > 1 else []
    lines.append(Line(tuple((x, y) for _, x, y in points), 2, 0, "good"))
    boxes = [
        Rectangle(x - _POINT / 2, y - _POINT / 2, _POINT, _POINT, "point", _point(level)) for level, x, y in points
    ]
    labels = [Label(_LEFT - 6, y + 4, text, "soft", "end") for y, text in _marks(highest)]
    labels += [Label(4, SMALL, "GB/s", "head"), *_sizes([(level, x) for level, x, _ in points])]
    return Drawing(_WIDTH, _HEIGHT, tuple(lines), tuple(boxes), tuple(labels))


def _marks(highest: float) -> Iterator[tuple[float, str]]:
    """Height and text of the marks of the vertical axis."""
    for step in range(_STEPS + 1):
        yield _HEIGHT - _BOTTOM - step / _STEPS * (_HEIGHT - _TOP - _BOTTOM), f"{highest * step / _STEPS / 1e9:.1f}"


def _sizes(points: Sequence[tuple[Level, float]]) -> Iterator[Label]:
    """The sizes below the axis, as many as fit."""
    free = 0.0
    for level, x in points:
        text = as_size(level.size or 0)
        left = x - text_width(text) / 2
        if left >= free and left + text_width(text) <= _WIDTH:
            yield Label(left, _HEIGHT - 12, text, "soft")
            free = left + text_width(text) + 10


def _point(level: Level) -> str:
    """ "64 MiB: 390.1 GB/s, expected 380.0 to 450.0"."""
    best = level.expected[0] if level.expected else None
    wanted = f", expected {best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else ""
    return f"{as_size(level.size or 0)}: {(level.observed or 0.0) / 1e9:.1f} GB/s{wanted}"
