"""The picture of `linkgauge plan`: the parts of the step of each layout as one bar, the fastest layout first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from ...models.training.planner import BUBBLE, COMPUTE, Plan
from ...models.training.step_time import Step
from ..text.terminal import safe
from .axes import round_step
from .palette import PARTS
from .shapes import SMALL, Drawing, Label, Line, Rectangle, cut, text_width
from .svg import svg_file

_NAMES = (COMPUTE, "tensor", "context", "expert", "data", "pipeline", "launch", BUBBLE, "optimizer")
_STYLES = dict(zip(_NAMES, PARTS, strict=True))
_MOST = 30  # layouts in one picture
_WIDTH, _TOP, _BOTTOM = 960.0, 52.0, 58.0
_ROW, _BAR = 26.0, 16.0  # pixels of a row, and of its bar
_NOTE = "Bars: seconds of a step, with the usual overlap. Thin line: from fastest to slowest."


def as_svg(plan: Plan, steps: Sequence[Step]) -> str:
    """A file with one bar for each of the first 30 layouts."""
    shown = steps[:_MOST]
    batch = f"{plan.job.tokens / 1e6:.3g}M tokens a step"
    about = safe(f"{plan.job.network.name} on {plan.cluster.gpus:,} x {plan.cluster.gpu.name}, {batch}")
    left = 20 + max(text_width(str(step.layout)) for step in shown)
    right = _WIDTH - 60
    most = max(max(step.slowest, step.usual) for step in shown)
    height = _TOP + _ROW * len(shown) + _BOTTOM
    boxes = [box for row, step in enumerate(shown) for box in _row(step, row, left, (right - left) / most)]
    labels = [Label(10, SMALL + 6, cut(about, _WIDTH - 20, "name"), "name")]
    labels += [Label(left - 8, _middle(row) + 4, str(step.layout), "rate", "end") for row, step in enumerate(shown)]
    labels += [Label(right + 8, _middle(row) + 4, _seconds(step.usual), "rate") for row, step in enumerate(shown)]
    marks = [*_marks(most, left, right)]
    lines = [Line(((x, _TOP - 6), (x, height - _BOTTOM)), 1, 0, "grid") for x, _ in marks]
    labels += [Label(x - text_width(text) / 2, _TOP - 12, text) for x, text in marks]
    used = [name for name in _NAMES if any(_part(step, name) for step in shown)]
    keys, names = _legend(used, left, height - _BOTTOM + 24)
    labels += [*names, Label(10, height - 10, _NOTE)]
    return svg_file(Drawing(_WIDTH, height, tuple(lines), (*boxes, *keys), tuple(labels)), f"Training step, {about}")


def _row(step: Step, row: int, left: float, scale: float) -> Iterator[Rectangle]:
    """The parts of a step and its spread. `scale`: pixels per second."""
    top = _middle(row) - _BAR / 2
    widths = [_part(step, name) * scale for name in _NAMES]
    for name, width, end in zip(_NAMES, widths, accumulate(widths), strict=True):
        if width:
            title = f"{step.layout}: {name} {_seconds(_part(step, name))}"
            yield Rectangle(left + end - width, top, width, _BAR, f"part {_STYLES[name]}", title)
    first, last = (left + one * scale for one in (min(step.fastest, step.usual), max(step.slowest, step.usual)))
    title = f"{step.layout}: {_seconds(step.fastest)} to {_seconds(step.slowest)}"
    for x, y, width, height in (
        (first, _middle(row) - 1, last - first, 2.0),
        (first - 1, _middle(row) - 5, 2.0, 10.0),
        (last - 1, _middle(row) - 5, 2.0, 10.0),
    ):
        yield Rectangle(x, y, width, height, "spread", title)


def _part(step: Step, name: str) -> float:
    """Seconds of one part of the step."""
    others = {COMPUTE: step.compute, BUBBLE: step.bubble, "optimizer": step.update}
    if name in others:
        return others[name]
    return step.waits[name].shown if name in step.waits else 0.0


def _middle(row: int) -> float:
    return _TOP + _ROW * (row + 0.5)


def _marks(most: float, left: float, right: float) -> Iterator[tuple[float, str]]:
    """Positions and texts of the axis of seconds."""
    step = round_step(most)
    for number in range(int(most / step) + 1):
        yield left + number * step / most * (right - left), _seconds(number * step)


def _legend(names: Sequence[str], left: float, y: float) -> tuple[list[Rectangle], list[Label]]:
    keys: list[Rectangle] = []
    labels: list[Label] = []
    for name in names:
        keys.append(Rectangle(left, y - 10, 12, 12, f"part {_STYLES[name]}", name))
        labels.append(Label(left + 17, y, name, "rate"))
        left += 34 + text_width(name)
    return keys, labels


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 or not value else f"{value * 1e3:.3g} ms"
