"""What surrounds the picture of a node: its title, findings without a place in it, and a legend."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...models.diagnosis.headlines import one_line
from ...models.report import Report
from ..text.terminal import safe, wrap
from ..text.vocabulary import counted, listed
from .diagram import Diagram, interconnects
from .path import Path
from .shapes import SMALL, TITLE, Drawing, Label, Line, cut, text_width
from .spots import LINE, MARGIN

_LEAST = 560.0  # width of a picture
_MOST = 12  # findings that are listed
_SAMPLE = 30.0  # width of a sample in the legend
_MEANINGS = {
    "good": "no finding",
    "warning": "warning",
    "critical": "critical",
    "unread": "not read",
}


def with_margins(drawing: Drawing, diagram: Diagram, report: Report, path: Path, whole: bool) -> Drawing:
    """The drawing with a legend. `whole`: also with a title, and with the findings without a place."""
    width = max(drawing.width, _LEAST)
    down = TITLE + 2 * LINE if whole else 0.0
    above = list(_title(report, path, width)) if whole else []
    lines = [_lowered(one, down) for one in drawing.lines]
    labels = [*above, *(replace(one, y=one.y + down) for one in drawing.labels)]
    y = drawing.height + down + SMALL
    for text, style in _notes(diagram, report, whole):
        for line in wrap(text, int((width - 2 * MARGIN) / text_width("x", style))):
            labels.append(Label(MARGIN, y, line, style))
            y += LINE
    below, legend = _legend(drawing, y + 6, width, bool(path.links))
    bottom = max([y, *(label.y for label in legend)]) + MARGIN
    boxes = tuple(replace(one, y=one.y + down) for one in drawing.boxes)
    return Drawing(width, bottom, (*lines, *below), boxes, (*labels, *legend))


def _lowered(line: Line, down: float) -> Line:
    return replace(line, points=tuple((x, y + down) for x, y in line.points))


def _title(report: Report, path: Path, width: float) -> Iterator[Label]:
    text = f"{safe(report.node or 'this node')}: {report.verdict}"
    yield Label(MARGIN, MARGIN + TITLE, cut(text, width - 2 * MARGIN, "title"), "title")
    parts = (report.profile.name if report.profile else "", report.taken_at or "", path.text)
    about = ", ".join(filter(None, parts))
    yield Label(MARGIN, MARGIN + TITLE + LINE + 3, cut(about, width - 2 * MARGIN), "soft")


def _notes(diagram: Diagram, report: Report, whole: bool) -> Iterator[tuple[str, str]]:
    """Findings, links and devices without a place in the picture."""
    for one in diagram.elsewhere[:_MOST] if whole else ():
        style = one.finding.severity if one.finding.severity != "info" else "soft"
        yield safe(one_line(one.finding)), style
    if rest := diagram.elsewhere[_MOST if whole else 0 :]:
        devices = dict.fromkeys(safe(one.finding.device or one.finding.subject) for one in rest)
        yield f"Findings without a place in the picture: {listed([*devices], _MOST)}", "soft"
    if others := interconnects(diagram, report.topology)[1]:
        pairs = listed([f"{safe(link.a)} to {safe(link.b)}" for link in others], _MOST)
        yield f"Not drawn: interconnect of {pairs}.", "soft"
    if diagram.skipped:
        yield f"Not drawn: {counted(diagram.skipped, 'other device')}. 'linkgauge topology' lists all devices.", "soft"


def _legend(drawing: Drawing, y: float, width: float, path: bool) -> tuple[list[Line], list[Label]]:
    """A sample and a meaning for each style that the drawing uses."""
    lines: list[Line] = []
    labels: list[Label] = []
    x = MARGIN
    for sample, text in _samples(drawing, path):
        needed = _SAMPLE + 8 + text_width(text) + 22
        if x > MARGIN and x + needed > width:
            x, y = MARGIN, y + LINE + 3
        lines.append(replace(sample, points=((x, y + 4), (x + _SAMPLE, y + 4))))
        labels.append(Label(x + _SAMPLE + 8, y + 8, text, "soft"))
        x += needed
    return lines, labels


def _samples(drawing: Drawing, path: bool) -> Iterator[tuple[Line, str]]:
    used = {one.style for one in drawing.lines} | {word for box in drawing.boxes for word in box.style.split()}
    for state, text in _MEANINGS.items():
        if state in used:
            yield Line((), 4, 0, state), text
    if any(one.dashed for one in drawing.lines):
        yield Line((), 4, 0, "good", dashed=True), "no independent evidence"
    if any(one.track for one in drawing.lines):
        yield Line((), 3, 8, "good"), "below its rated rate (an idle device may save power)"
    if path:
        yield Line((), 3, 0, "good", marked=True), "chosen path"
    if drawing.lines:
        yield Line((), 6, 0, "good"), "a wider line is faster"
