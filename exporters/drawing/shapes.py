"""What a drawing consists of: boxes, lines and texts at positions in pixels, and the estimated size of a text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..text.terminal import cells, fitted

SIZE = 12  # pixels of a font; 11 is the least that is readable
SMALL = 11
TITLE = 18
_WIDEST = 0.61  # width of an average character of the usual sans-serif fonts, in font sizes
_BOLD = 0.69
_BOLD_STYLES = frozenset({"name", "title", "warning", "critical"})


# Pixels of the widest box of each column.
WIDEST: Mapping[str, float] = {"processor": 136, "root": 124, "switch": 150, "device": 184, "port": 160}
PAD = 8.0  # pixels between the text and the border of a box


class Label(Struct, frozen=True):
    """A text. `x` is its start, or its end if `anchor` says so; `y` is its baseline."""

    x: float
    y: float
    text: str
    style: str = "soft"  # "name", "soft", "head", or a state
    anchor: str = "start"
    number: int | None = None  # of the finding that the text belongs to

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        width = text_width(self.text, self.style)
        left = self.x - {"start": 0.0, "end": width}[self.anchor]
        return left, self.y - font_size(self.style), left + width, self.y + 0.25 * font_size(self.style)


class Rectangle(Struct, frozen=True):
    """A box. The title is what a pointer over it and a screen reader show."""

    x: float
    y: float
    width: float
    height: float
    style: str  # a state, with "bar" before it for what joins devices
    title: str = ""
    numbers: tuple[int, ...] = ()  # of its findings


class Line(Struct, frozen=True):
    """A connection along points. `track` is the width of its rated rate, `width` that of its present rate."""

    points: tuple[tuple[float, float], ...]
    width: float
    track: float
    style: str  # a state
    dashed: bool = False
    marked: bool = False  # on the chosen path
    numbers: tuple[int, ...] = ()  # of its findings


class Drawing(Struct, frozen=True):
    """Shapes and the size of the area that holds them. Lines are below boxes, and boxes below texts."""

    width: float
    height: float
    lines: tuple[Line, ...]
    boxes: tuple[Rectangle, ...]
    labels: tuple[Label, ...]


def font_size(style: str) -> int:
    """Pixels of the font of a style."""
    return {"name": SIZE, "title": TITLE}.get(style, SMALL)


def text_width(text: str, style: str = "soft") -> float:
    """The estimated width of a text in pixels. Names are bold."""
    return cells(text) * font_size(style) * (_BOLD if style in _BOLD_STYLES else _WIDEST)


def cut(text: str, width: float, style: str = "soft") -> str:
    """The text, cut so that it is not wider."""
    return fitted(text, max(4, int(width / text_width("x", style) + 0.01)))


def characters(column: str, style: str) -> int:
    """The length of the longest text that fits into a box of a column."""
    return int((WIDEST[column] - 2 * PAD) / text_width("x", style))
