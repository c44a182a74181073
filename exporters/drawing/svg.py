"""A report's topology as an SVG picture, as a file or as a part of a page."""

from __future__ import annotations

import os
from functools import cache

import jinja2
from msgspec import Struct

from ...models.report import Report
from ..text.terminal import safe
from ..text.vocabulary import counted
from .layout import drawing_of
from .margins import with_margins
from .palette import DARK, LIGHT, PARTS, STATES, variables
from .path import Path, no_path
from .shapes import SIZE, SMALL, TITLE, Drawing

_TEMPLATE = "picture.svg.jinja"
_LEAST = 800  # pixels: a window of this width shows each picture completely
LIMITS = range(900, 1401, 100)  # widths of windows, one of which is the least for a wide picture
_AROUND = 48  # pixels of a page beside its picture
_RULES = f"""
.lg text {{ font: {SMALL}px system-ui, "DejaVu Sans", sans-serif; fill: var(--soft); unicode-bidi: isolate; }}
.lg .name {{ font-size: {SIZE}px; font-weight: 700; fill: var(--text); }} .lg .rate {{ fill: var(--text); }}
.lg .title {{ font-size: {TITLE}px; font-weight: 700; fill: var(--text); }} .lg .head {{ fill: var(--soft); }}
.lg .ground {{ fill: var(--back); }} .lg rect {{ fill: var(--panel); stroke: var(--line); stroke-width: 1.2; }}
.lg rect.ground {{ fill: var(--back); stroke: none; }} .lg rect.bar {{ stroke: var(--soft); }}
.lg polyline {{ fill: none; }} .lg .track {{ stroke: var(--line); }} .lg .path {{ stroke: var(--path); }}
.lg .bare {{ stroke-dasharray: 7 5; }}
.lg .unread {{ stroke-dasharray: 2 4; }} .lg rect.unread, .lg rect.absent {{ stroke-dasharray: 4 4; }}
.lg .grid {{ stroke: var(--line); }} .lg .bound {{ stroke: var(--soft); }}
.lg .band {{ fill: var(--path); stroke: none; }}
.lg rect.point {{ fill: var(--good); stroke: none; }}
"""
_PARTS = """
.lg rect.part { stroke: var(--back); stroke-width: 1; } .lg rect.spread { fill: var(--text); stroke: none; }
""" + "".join(f".lg rect.{name} {{ fill: {colour}; }}\n" for name, colour in PARTS.items())


def as_svg(report: Report, path: Path | None = None) -> str:
    """The picture as a file of its own, with title, legend and styles."""
    return _titled(report, _drawn(report, path or no_path(), whole=True), _styles())


class Part(Struct, frozen=True):
    """A picture as a part of a page. `shown`: the class of windows (html/styles.py) that it is for; "": all windows."""

    svg: str
    shown: str


def svg_parts(report: Report) -> tuple[Part, ...]:
    """The picture for a page that has `svg_rules` and the variables of palette.py, and one for narrow windows."""
    wide = _drawn(report, no_path(), whole=False)
    if wide.width <= _LEAST - _AROUND:
        return (Part(_titled(report, wide), ""),)
    narrow = _titled(report, _drawn(report, no_path(), whole=False, narrow=True))
    limit = next((one for one in LIMITS if wide.width <= one - _AROUND), None)
    if limit is None:
        return (Part(narrow, ""),)
    return Part(_titled(report, wide), f"from{limit}"), Part(narrow, f"below{limit}")


@cache
def svg_rules() -> str:
    """The CSS rules of a picture."""
    states = "".join(
        f".lg .wire.{one} {{ stroke: var(--{one}); }} .lg text.{one} {{ fill: var(--{one}); font-weight: 700; }}\n"
        f".lg rect.{one} {{ stroke: var(--{one}); stroke-width: 2.5; }}\n"
        for one in STATES
        if one != "good"
    )
    return f"{_RULES}.lg .wire.good {{ stroke: var(--good); }}\n{states}"


def _drawn(report: Report, path: Path, whole: bool, narrow: bool = False) -> Drawing:
    drawing, diagram = drawing_of(report, path, narrow)
    return with_margins(drawing, diagram, report, path, whole)


def _titled(report: Report, drawing: Drawing, style: str = "") -> str:
    summary = f"{safe(report.node or 'this node')}: {report.verdict}, {counted(len(report.findings), 'finding')}"
    return rendered(drawing, summary, style)


def svg_file(drawing: Drawing, summary: str) -> str:
    """A chart as a file of its own. `summary`: what a screen reader says."""
    return rendered(drawing, summary, _styles() + _PARTS)


def _styles() -> str:
    light = f".lg {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
    dark = f"@media screen and (prefers-color-scheme: dark) {{ .lg {{ {variables(DARK)} }} }}"
    return f"{light}{dark}{svg_rules()}"


def rendered(drawing: Drawing, summary: str, style: str = "") -> str:
    """A drawing as SVG. `summary`: what a screen reader says. Without `style`, the page has the styles."""
    return _template().render(drawing=drawing, summary=summary, style=style)


@cache
def _template() -> jinja2.Template:
    with open(os.path.join(os.path.dirname(__file__), _TEMPLATE), encoding="utf-8") as file:
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_visible)
        environment.filters["px"] = _pixels
        environment.filters["points"] = _points
        return environment.from_string(file.read())


def _visible(value: object) -> object:
    """Texts without control characters, which XML forbids, and without direction marks."""
    return "\n".join(map(safe, value.split("\n"))) if type(value) is str else value


def _pixels(value: float) -> str:
    """A position with at most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")


def _points(points: tuple[tuple[float, float], ...]) -> str:
    return " ".join(f"{_pixels(x)},{_pixels(y)}" for x, y in points)
