"""The shapes of a node's picture: boxes and texts of the parts, wires between them, and bars beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import log2

from ...models.facts.units import as_gigabytes
from ...models.graph.topology import Topology
from ...models.report import Report
from ..text.terminal import wrap
from .absent import ABSENT, with_absent
from .bars import Bar, bars_of
from .compact import compact
from .diagram import Diagram, Words, diagram_of, interconnects
from .path import Path
from .shapes import PAD, SMALL, Drawing, Label, Line, Rectangle, cut, text_width
from .spots import LINE, MARGIN, Pillar, Spot, columns_of, pillars_of, spots_of
from .wires import Wire, wire_of

_GRAIN = 2e9  # bytes per second: a wire of this rate is one step wider than the thinnest
_BAR = 128.0  # width
_SCREENFUL = 700.0  # pixels that a reader sees at a time
_LIFT = 4.0  # pixels between a wire and its label
_SLIGHT = 0.999  # of the rated rate: tolerance for rounding


def drawing_of(report: Report, path: Path, narrow: bool = False) -> tuple[Drawing, Diagram]:
    """The drawing of a report's topology with a chosen path. `narrow`: for a narrow window."""
    report = with_absent(report)
    diagram, marked = diagram_of(report, path.bottleneck), path.links
    bars = bars_of(diagram, report.topology)
    if narrow:
        diagram, bars = compact(diagram, report.topology), ()
    columns = columns_of(diagram.tops)
    spots = tuple(spots_of(diagram.tops, columns, MARGIN + LINE + 6))
    pillars = pillars_of(spots, columns)
    boxes = [_box(spot, pillars) for spot in spots]
    labels = [Label(one.left, MARGIN + SMALL, one.head, "head") for one in pillars if one.head]
    lines: list[Line] = []
    for spot in spots:
        labels += _texts(spot, pillars)
        _add(lines, labels, _wires(spot, spots, pillars, marked))
    _add(lines, labels, _interconnects(spots, pillars, diagram, report.topology, marked))
    right = max((one.left + one.width for one in pillars), default=MARGIN)
    for bar in bars:
        right = _draw_bar(bar, spots, pillars, right, (lines, boxes, labels), marked)
    width = max([right, *(label.box[2] for label in labels)]) + MARGIN
    bottom = max((box.y + box.height for box in boxes), default=2 * MARGIN)
    return Drawing(width, bottom + MARGIN, tuple(lines), tuple(boxes), tuple(labels)), diagram


def stroke(rate: float | None) -> float:
    """The width of a wire in pixels: 0.8 more for each doubling of its rate."""
    return 1.0 if rate is None else 1 + 0.8 * log2(1 + rate / _GRAIN)


def _add(lines: list[Line], labels: list[Label], drawn: Iterator[tuple[Line, Label | None]]) -> None:
    for line, label in drawn:
        lines.append(line)
        labels += [label] if label else []


def _box(spot: Spot, pillars: Sequence[Pillar]) -> Rectangle:
    pillar, part = pillars[spot.column], spot.part
    title = "\n".join(words.text for words in part.lines)
    style = f"{part.column} {part.state}{' absent' if part.device.kind == ABSENT else ''}"
    return Rectangle(pillar.left, spot.top, pillar.width, spot.height, style, title, part.numbers)


def _texts(spot: Spot, pillars: Sequence[Pillar]) -> Iterator[Label]:
    """The lines of a part, in the middle of its box."""
    pillar, lines = pillars[spot.column], spot.part.lines
    for y, words in _rows(spot.top, spot.height, lines):
        room = pillar.width - 2 * PAD - (text_width(words.aside) + PAD if words.aside else 0)
        yield Label(pillar.left + PAD, y, cut(words.text, room, words.style), words.style, number=words.number)
        if words.aside:
            yield Label(pillar.left + pillar.width - PAD, y, words.aside, "soft", "end")


def _rows(top: float, height: float, lines: Sequence[Words]) -> Iterator[tuple[float, Words]]:
    """The lines with their baselines. A tall box has them several times, so that each screenful of it has a name."""
    times = max(1, int(height / _SCREENFUL))
    for number in range(times):
        middle = top + height * (2 * number + 1) / (2 * times)
        for place, words in enumerate(lines):
            yield middle + LINE * (place - len(lines) / 2) + SMALL, words


def _line(wire: Wire, points: tuple[tuple[float, float], ...], marked: frozenset[str]) -> Line:
    full = wire.rated if wire.rated is not None else wire.trained
    if wire.rated and wire.trained is not None and wire.trained < wire.rated * _SLIGHT:
        track = stroke(wire.rated) + 2
        now = max(1.5, track * wire.trained / wire.rated) if wire.trained else 0.0
        return Line(points, now, track, wire.state, wire.bare, bool(wire.links & marked), wire.numbers)
    least = 0.0 if wire.state == "good" else 2.0
    return Line(points, max(least, stroke(full)), 0.0, wire.state, wire.bare, bool(wire.links & marked), wire.numbers)


def _wires(
    spot: Spot, spots: Sequence[Spot], pillars: Sequence[Pillar], marked: frozenset[str]
) -> Iterator[tuple[Line, Label | None]]:
    """The wire to the part above, and the one to the processor that passes above root ports."""
    left, part = pillars[spot.column].left, spot.part
    parent = next((one for one in spots if one.part is spot.above), None) if spot.above else None
    if part.wire and parent:
        yield _horizontal(part.wire, _right(parent, pillars), left, spot.wire_y, marked)
    if part.bypass and parent:
        processor = next((one for one in spots if one.above is None and _holds(one, spot)), parent)
        yield _horizontal(part.bypass, _right(processor, pillars), left, spot.top + 14, marked)


def _holds(outer: Spot, inner: Spot) -> bool:
    return outer.top <= inner.top < outer.top + outer.height


def _horizontal(wire: Wire, start: float, end: float, y: float, marked: frozenset[str]) -> tuple[Line, Label | None]:
    """A wire with its label above it, near its right end."""
    line = _line(wire, ((start, y), (end, y)), marked)
    lift = y - max(line.width, line.track) / 2 - _LIFT
    return line, Label(end - 8, lift, wire.label, wire.style, "end") if wire.label else None


def _right(spot: Spot, pillars: Sequence[Pillar]) -> float:
    return pillars[spot.column].left + pillars[spot.column].width


def _interconnects(
    spots: Sequence[Spot], pillars: Sequence[Pillar], diagram: Diagram, topology: Topology, marked: frozenset[str]
) -> Iterator[tuple[Line, Label | None]]:
    """The links between processors that are neighbours in the picture."""
    places = {id(spot.part): spot for spot in spots}
    for upper, lower, links in interconnects(diagram, topology)[0]:
        one, two = places[id(upper)], places[id(lower)]
        wire = wire_of(diagram.states, links, "")
        known = as_gigabytes(wire.trained) if wire.trained else "rate not known"
        text = ", ".join(filter(None, ("interconnect", known, wire.label)))
        x = pillars[0].left + pillars[0].width / 4
        line = _line(wire, ((x, one.top + one.height), (x, two.top)), marked)
        yield line, Label(x + 10, (one.top + one.height + two.top) / 2 + 4, text, "rate")


def _draw_bar(
    bar: Bar,
    spots: Sequence[Spot],
    pillars: Sequence[Pillar],
    right: float,
    shapes: tuple[list[Line], list[Rectangle], list[Label]],
    marked: frozenset[str],
) -> float:
    """Add a bar to the right of `right`. Returns the new right edge."""
    lines, boxes, labels = shapes
    places = {spot.part.device.id: spot for spot in spots}
    ends = [(places[name], wire) for name, wire in bar.ends if name in places]
    if not ends:
        return right
    taken = {line.points[0] for line in lines}
    heights = [_free(spot, {y for x, y in taken if x == _right(spot, pillars)}) for spot, _ in ends]
    start = max(_right(spot, pillars) for spot, _ in ends)
    left = max([right + 24, *(start + text_width(wire.label, wire.style) + 20 for _, wire in ends)])
    for number, ((spot, wire), y) in enumerate(zip(ends, heights, strict=True)):
        end = ((left, y), (left, heights[1])) if not bar.title and number == 0 else ((left, y),)
        line = _line(wire, ((_right(spot, pillars), y), *end), marked)
        lines.append(line)
        if wire.label and (bar.title or number == 0):
            lift = y - max(line.width, line.track) / 2 - _LIFT
            labels.append(Label(_right(spot, pillars) + 8, lift, wire.label, wire.style))
    if not bar.title:
        return left
    top, bottom = min(spot.top for spot, _ in ends), max(spot.top + spot.height for spot, _ in ends)
    boxes.append(Rectangle(left, top, _BAR, bottom - top, "bar", "\n".join(bar.title)))
    about = [Words(line) for text in bar.title[1:] for line in wrap(text, int((_BAR - 2 * PAD) / text_width("x")))]
    for y, words in _rows(top, bottom - top, (Words(cut(bar.title[0], _BAR - 2 * PAD, "name"), "name"), *about)):
        labels.append(Label(left + PAD, y, words.text, words.style))
    return left + _BAR


def _free(spot: Spot, taken: Collection[float]) -> float:
    """A height at the right edge of a device where no wire starts yet: its middle, then below and above it."""
    middle = spot.top + spot.height / 2
    tries = [middle + step * 22 * side for step in range(6) for side in (1, -1)]
    return next((y for y in tries if all(abs(y - other) > 20 for other in taken)), middle)
