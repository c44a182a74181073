"""Measured rates of one flow by message size, with the expected range: a curve over a band."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, log2

from msgspec import Struct

from ...models.facts.units import as_size
from ...models.report import Level, Report
from ..text.vocabulary import counted
from .axes import round_step
from .shapes import Drawing, Label, Line, Rectangle, text_width

WIDTH, HEIGHT = 680.0, 258.0
LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 30.0, 30.0, 34.0  # margins
HEAD = 17.0  # baseline of the line above the curve
_FEWEST = 3  # sizes of a curve
_POINT = 6.0  # pixels of a measured point


class Point(Struct, frozen=True):
    """A rate at a message size, the range that holds it, and its upper bound. Bytes and bytes per second."""

    size: int
    rate: float
    title: str
    low: float | None = None
    high: float | None = None
    bound: float | None = None


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
        yield Curve(f"{_flow(levels[0])} by message size", f"GB/s. {about}", drawn([*map(_point, levels)]))


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


def drawn(points: Sequence[Point]) -> Drawing:
    """Logarithmic sizes to the right, rates in GB/s from zero upwards. At least two sizes, the smallest first."""
    first, last = log2(points[0].size), log2(points[-1].size)
    most = max(max(one.rate, one.high or 0.0, one.bound or 0.0) for one in points) or 1.0
    highest = ceil(most / round_step(most) - 1e-9) * round_step(most)

    def place(size: int, rate: float) -> tuple[float, float]:
        right = (log2(size) - first) / (last - first)
        inner = HEIGHT - _TOP - _BOTTOM
        return LEFT + right * (WIDTH - LEFT - _RIGHT), _TOP + (1 - rate / highest) * inner

    low = [place(one.size, one.low) for one in points if one.low is not None]
    high = [place(one.size, one.high) for one in points if one.high is not None]
    bound = [place(one.size, one.bound) for one in points if one.bound is not None]
    places = [(one, *place(one.size, one.rate)) for one in points]
    lines = [Line(((LEFT, y), (WIDTH - _RIGHT, y)), 1, 0, "grid") for y, _ in _marks(highest)]
    lines += [Line((*high, *low[::-1]), 1, 0, "band")] if len(high) > 1 else []
    lines += [Line(tuple(bound), 1.5, 0, "bound", dashed=True)] if len(bound) > 1 else []
    lines.append(Line(tuple((x, y) for _, x, y in places), 2, 0, "good"))
    boxes = [Rectangle(x - _POINT / 2, y - _POINT / 2, _POINT, _POINT, "point", one.title) for one, x, y in places]
    labels = [Label(LEFT - 6, y + 4, text, "soft", "end") for y, text in _marks(highest)]
    labels += [Label(4, HEAD, "GB/s", "head"), *_sizes([(one.size, x) for one, x, _ in places])]
    return Drawing(WIDTH, HEIGHT, tuple(lines), tuple(boxes), tuple(labels))


def _marks(highest: float) -> Iterator[tuple[float, str]]:
    """Height and text of the marks of the vertical axis."""
    steps = round(highest / round_step(highest))
    for step in range(steps + 1):
        yield HEIGHT - _BOTTOM - step / steps * (HEIGHT - _TOP - _BOTTOM), f"{highest * step / steps / 1e9:g}"


def _sizes(points: Sequence[tuple[int, float]]) -> Iterator[Label]:
    """The sizes below the axis, as many as fit."""
    free = 0.0
    for size, x in points:
        text = as_size(size)
        left = x - text_width(text) / 2
        if left >= free and left + text_width(text) <= WIDTH:
            yield Label(left, HEIGHT - 12, text, "soft")
            free = left + text_width(text) + 10


def _point(level: Level) -> Point:
    """The point "64 MiB: 390.1 GB/s, expected 380.0 to 450.0"."""
    best, size, rate = level.expected[0] if level.expected else None, level.size or 1, level.observed or 0.0
    wanted = f", expected {best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else ""
    title = f"{as_size(size)}: {rate / 1e9:.1f} GB/s{wanted}"
    return Point(size, rate, title, best.low if best else None, best.high if best else None)
