"""The picture of `linkgauge collective`: bus bandwidth by size, the range of good machines, and the bound."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...models.facts.units import as_size
from ...models.training.cluster import Cluster
from ...models.training.collective_time import Collective
from ..commands.collective import heading
from ..text.terminal import safe, wrap
from .curves import HEAD, HEIGHT, LEFT, WIDTH, Point, drawn
from .shapes import Label, cut, text_width
from .svg import svg_file

_LINE = 16.0  # pixels from one line of text to the next


def as_svg(found: Collective, cluster: Cluster, rows: Sequence[Collective]) -> str:
    """A file with the curve of `rows`, one per size."""
    about = heading(found, cluster, sized=False)
    curve = drawn([*map(_point, rows)])
    columns = int((WIDTH - LEFT) / text_width("x"))
    notes = [line for text in _notes(found) for line in wrap(text, columns)]
    labels = [Label(LEFT, HEIGHT + (number + 0.5) * _LINE, text) for number, text in enumerate(notes)]
    title = Label(LEFT, HEAD, cut(about, WIDTH - LEFT, "name"), "name")
    whole = replace(curve, height=HEIGHT + (len(notes) + 0.5) * _LINE, labels=(*curve.labels, title, *labels))
    return svg_file(whole, f"Bus bandwidth by size, {about}")


def _notes(found: Collective) -> tuple[str, ...]:
    bound = "Dashed: the bound, the slowest level at the rated rates."
    if found.typical is None:
        return (
            "Line: bus bandwidth of the bound, the slowest level at the rated rates.",
            f"Not known: {safe(found.source)}",
        )
    return (
        f"Line: typical bus bandwidth. Band: the slowest to the fastest good machines. {bound}",
        f"Source: {safe(found.source)}",
    )


def _point(row: Collective) -> Point:
    """The typical rate or, where nothing is published, the bound."""
    size, bound = as_size(row.request.size), row.bound.bus_bandwidth
    if row.low is None or row.typical is None or row.high is None:
        return Point(row.request.size, bound, f"{size}: bound {bound / 1e9:.1f} GB/s")
    low, typical, high = (one.bus_bandwidth for one in (row.low, row.typical, row.high))
    title = f"{size}: typical {typical / 1e9:.1f} GB/s, {low / 1e9:.1f} to {high / 1e9:.1f}, bound {bound / 1e9:.1f}"
    return Point(row.request.size, typical, title, low, high, bound)
