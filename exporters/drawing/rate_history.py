"""The picture of `linkgauge history`: the rates of each flow over time, with the start of a lasting change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.facts.records import Flow
from ...models.facts.units import as_utc
from ...models.history.drift import Drift, drift
from ...models.history.past import History
from ..text.terminal import safe
from .axes import round_step
from .shapes import SMALL, Drawing, Label, Line, Rectangle, cut
from .svg import svg_file

_WIDTH, _TOP, _BOTTOM = 960.0, 34.0, 26.0
_LEFT, _RIGHT = 64.0, 20.0
_PANEL, _GRAPH = 150.0, 96.0  # pixels of the height of a flow, and of its graph
_POINT = 4.0
_DATE = 10  # characters of "2025-01-31"


def as_svg(history: History, node: str) -> str:
    """A file with one graph per flow."""
    times = [at for series in history.rates.values() for at, _ in series]
    first, last = min(times), max(times)
    span = (first, max(last, first + 1.0))
    lines: list[Line] = []
    boxes: list[Rectangle] = []
    labels = [Label(10, SMALL + 6, cut(f"{safe(node)}: measured rates", _WIDTH - 20, "name"), "name")]
    for number, (flow, series) in enumerate(history.rates.items()):
        panel = _graph(flow, series, span, _TOP + number * _PANEL)
        lines += panel.lines
        boxes += panel.boxes
        labels += panel.labels
    height = _TOP + len(history.rates) * _PANEL + _BOTTOM
    labels += [
        Label(_LEFT, height - 10, as_utc(span[0])[:_DATE], "soft"),
        Label(_WIDTH - _RIGHT, height - 10, f"{as_utc(span[1])[:_DATE]} (UTC)", "soft", "end"),
    ]
    whole = Drawing(_WIDTH, height, tuple(lines), tuple(boxes), tuple(labels))
    return svg_file(whole, f"Measured rates of {safe(node)}")


def _graph(flow: Flow, series: Sequence[tuple[float, float]], span: tuple[float, float], top: float) -> Drawing:
    """The rates of one flow in GB/s from zero upwards, below its title."""
    most = max(rate for _, rate in series) or 1.0
    bottom = top + _PANEL - 14

    def place(at: float, rate: float) -> tuple[float, float]:
        right = (at - span[0]) / (span[1] - span[0])
        return _LEFT + right * (_WIDTH - _LEFT - _RIGHT), bottom - rate / most * _GRAPH

    found = drift(series)
    boxes = tuple(_point(*place(at, rate), f"{as_utc(at)}: {rate / 1e9:.4g} GB/s") for at, rate in series)
    marks = [(rate, place(span[0], rate)[1]) for rate in _marks(most)]
    lines = [Line(((_LEFT, y), (_WIDTH - _RIGHT, y)), 1, 0, "grid") for _, y in marks]
    if found:
        x, _ = place(found.start, 0.0)
        lines.append(Line(((x, bottom - _GRAPH), (x, bottom)), 2, 0, "warning"))
    labels = [Label(_LEFT - 6, y + 4, f"{rate / 1e9:.4g}", "soft", "end") for rate, y in marks]
    title = cut(safe(f"{flow.op} {flow.subject}, GB/s"), _WIDTH / 2, "name")
    labels.append(Label(_LEFT, bottom - _GRAPH - 12, title, "name"))
    if found:
        labels.append(Label(_WIDTH - _RIGHT, bottom - _GRAPH - 12, _change(found), "warning", "end"))
    return Drawing(_WIDTH, _PANEL, tuple(lines), boxes, tuple(labels))


def _point(x: float, y: float, title: str) -> Rectangle:
    return Rectangle(x - _POINT / 2, y - _POINT / 2, _POINT, _POINT, "point", title)


def _marks(most: float) -> Iterator[float]:
    step = 2 * round_step(most)
    yield from (number * step for number in range(int(most / step) + 1))


def _change(found: Drift) -> str:
    before, after = found.before / 1e9, found.after / 1e9
    return f"since {as_utc(found.start)[:16].replace('T', ' ')}: {after:.4g} instead of {before:.4g} GB/s"
