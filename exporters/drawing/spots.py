"""Positions of the parts of a node: a column per kind of part, and a row per device.

A part is as tall as everything below it, so each wire is horizontal and meets no box and no text of another row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from .diagram import Column, Part
from .shapes import PAD, WIDEST, text_width

MARGIN = 16.0
LINE = 15.0  # pixels of a line of text
_NARROW = 76.0  # width of a box
_BYPASS = 20.0  # height of a wire that passes above a root port
_GAPS: Mapping[Column, float] = {"processor": 44, "root": 12, "switch": 10, "device": 8, "port": 4}
_HEADS: Mapping[str, str] = {
    "processor": "Processors",
    "root": "Root ports",
    "switch": "PCIe switches",
    "device": "Devices",
    "port": "Network ports",
}


class Pillar(Struct, frozen=True):
    """A column: its heading, its left edge and its width."""

    head: str
    left: float
    width: float


class Spot(Struct, frozen=True):
    """A part with its place. `head` is the height above its wire that a bypass needs; `above`: the part above it."""

    part: Part
    column: int
    top: float
    height: float
    head: float
    above: Part | None

    @property
    def wire_y(self) -> float:
        """Where the wire from above arrives."""
        return self.top + self.head + (self.height - self.head) / 2


def columns_of(tops: Sequence[Part]) -> tuple[str, ...]:
    """The kinds of the columns, with one column per level of nested switches: "switch0", "switch1"."""
    kinds: set[str] = set()

    def visit(part: Part, depth: int) -> None:
        kinds.add(_kind(part, depth))
        for below in part.below:
            visit(below, depth + (part.column == "switch"))

    for part in tops:
        visit(part, 0)
    order = ["processor", "root", *(f"switch{depth}" for depth in range(len(kinds))), "device", "port"]
    return tuple(kind for kind in order if kind in kinds)


def spots_of(tops: Sequence[Part], columns: Sequence[str], top: float) -> Iterator[Spot]:
    """The spots of all parts."""
    for part in tops:
        height = _height(part)
        yield from _subtree(part, columns, top, height, 0, None)
        top += height + _GAPS[part.column]


def pillars_of(spots: Sequence[Spot], columns: Sequence[str]) -> tuple[Pillar, ...]:
    """The columns. The gap before a column holds the longest label of its wires."""
    found: list[Pillar] = []
    x = MARGIN
    for number, kind in enumerate(columns):
        here = [spot.part for spot in spots if spot.column == number]
        name = kind.rstrip("0123456789")
        head = "" if number and columns[number - 1].rstrip("0123456789") == name else _HEADS[name]
        labels = [text_width(wire.label, wire.style) + 22 for part in here for wire in (part.wire, part.bypass) if wire]
        left = x + max([28.0, *labels]) if number else x
        texts = [words.width + 2 * PAD for part in here for words in part.lines]
        width = min(WIDEST[name], max([_NARROW, text_width(head, "head"), *texts]))
        found.append(Pillar(head, left, width))
        x = left + width
    return tuple(found)


def _subtree(
    part: Part, columns: Sequence[str], top: float, height: float, depth: int, above: Part | None
) -> Iterator[Spot]:
    """The spot of a part in an area, and those below it in the middle of the area."""
    head = _head(part)
    passed = head if part.column in ("root", "switch") else 0.0  # the bypass runs above the box
    yield Spot(part, columns.index(_kind(part, depth)), top + passed, height - passed, head - passed, above)
    y = top + (height - _inner(part.below)) / 2
    for below in part.below:
        alone = len(part.below) == 1 and below.column in ("root", "switch")
        tall = height if alone else _height(below)
        yield from _subtree(below, columns, top if alone else y, tall, depth + (part.column == "switch"), part)
        y += tall + _GAPS[below.column]


def _kind(part: Part, depth: int) -> str:
    return f"switch{depth}" if part.column == "switch" else part.column


def _height(part: Part) -> float:
    """The height of a part: that of its text, or of all parts below it."""
    return max(LINE * len(part.lines) + PAD + _head(part), _inner(part.below))


def _inner(parts: Sequence[Part]) -> float:
    return sum(_height(part) + _GAPS[part.column] for part in parts) - (_GAPS[parts[-1].column] if parts else 0.0)


def _head(part: Part) -> float:
    """The height for a bypass: of the part itself, or of the only part below it."""
    if part.column == "processor":
        return 0.0
    if part.bypass:
        return _BYPASS
    return _head(part.below[0]) if len(part.below) == 1 else 0.0
