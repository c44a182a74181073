"""The lines of the screen: a title, clocks of GPUs, the links, and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from ...exporters.text.terminal import fitted, painter, safe
from ...exporters.text.vocabulary import listed
from ...exporters.traffic.tables import gpu_table, table, tree
from ...models.traffic.selection import selected
from ...models.traffic.tree import branches
from ...models.traffic.view import View
from .controls import HELP, Controls

_NARROWEST, _LOWEST = 20, 3  # columns and lines
_MOST_LOST = 8  # names in a line


def frame(view: View, controls: Controls, width: int, height: int, colour: bool) -> list[str]:
    """`height` lines of at most `width` columns. The first line is the title, the last one has the keys."""
    width, height = max(width, _NARROWEST), max(height, _LOWEST)
    paint = painter(colour)
    notes = [paint(fitted(text, width), style) for text, style in _notes(view)][: height - _LOWEST]
    body = _body(view, controls, width, colour)
    room = height - len(notes) - 2
    first = min(controls.first, max(0, len(body) - room))
    shown = body[first : first + room]
    hidden = [f"lines {first + 1}-{first + len(shown)} of {len(body)}"] if len(shown) < len(body) else []
    title = paint(fitted("  ".join([*_title(view, controls), *hidden]), width), "bold")
    keys = paint(fitted(_keys(controls), width), "dim")
    return [title, *notes, *shown, *[""] * (room - len(shown)), keys]


def _title(view: View, controls: Controls) -> list[str]:
    at = "reading ..." if view.at is None else _clock(view.at)
    parts = ["linkgauge top", safe(view.node or "this node"), at]
    parts += [] if controls.as_tree else [f"sorted by {controls.choice.order}"]
    parts += [f"filter: {safe(controls.choice.text)}"] if controls.choice.text and not controls.typing else []
    parts += ["PAUSED"] if controls.paused else []
    return parts


def _notes(view: View) -> Iterator[tuple[str, str]]:
    """Below the title: GPUs that fail and devices that are not there any more, whose lines may be below the screen, and
    what could not be read. Each line with its style.
    """
    gone = [safe(one.name) for one in view.carriers if (one.subject, one.kind) in view.lost]
    lost = [*dict.fromkeys([*(safe(gpu.key) for gpu in view.gpus.values() if gpu.failure), *gone])]
    if lost:
        yield f"LOST: {listed(lost, _MOST_LOST)}", "critical"
    if view.note:
        yield safe(view.note), "warning"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%H:%M:%S UTC")


def _body(view: View, controls: Controls, width: int, colour: bool) -> list[str]:
    links = selected(view.links, controls.choice)
    clocks = gpu_table(view.gpus.values(), width, colour) if controls.gpus else []
    rows = tree(branches(links, view.topology), width, colour) if controls.as_tree else table(links, width, colour)
    return [*clocks, *rows]


def _keys(controls: Controls) -> str:
    if controls.typing:
        return f"filter: {safe(controls.choice.text)}_   Enter: keep it, Esc: none"
    return "  ".join(f"{key} {what}" for key, what in HELP)
