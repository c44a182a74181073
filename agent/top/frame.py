"""The lines of the screen: a title, clocks of GPUs, the links, and the keys."""

from __future__ import annotations

from datetime import datetime, timezone

from ...exporters.text.terminal import fitted, painter, safe
from ...exporters.traffic.tables import gpu_table, table, tree
from ...models.traffic.selection import selected
from ...models.traffic.tree import branches
from ...models.traffic.view import View
from .controls import HELP, Controls

_NARROWEST, _LOWEST = 20, 3  # columns and lines


def frame(view: View, controls: Controls, width: int, height: int, colour: bool) -> list[str]:
    """`height` lines of at most `width` columns. The first line is the title, the last one has the keys."""
    width, height = max(width, _NARROWEST), max(height, _LOWEST)
    paint = painter(colour)
    head = [paint(fitted(_title(view, controls), width), "bold")]
    if view.note and height > _LOWEST:
        head.append(paint(fitted(safe(view.note), width), "warning"))
    body = _body(view, controls, width, colour)
    room = height - len(head) - 1
    first = min(controls.first, max(0, len(body) - room))
    shown = body[first : first + room]
    return [*head, *shown, *[""] * (room - len(shown)), paint(fitted(_keys(controls), width), "dim")]


def _title(view: View, controls: Controls) -> str:
    at = "reading ..." if view.at is None else _clock(view.at)
    parts = ["linkgauge top", safe(view.node or "this node"), at]
    parts += [] if controls.as_tree else [f"sorted by {controls.choice.order}"]
    parts += [f"filter: {safe(controls.choice.text)}"] if controls.choice.text and not controls.typing else []
    parts += ["PAUSED"] if controls.paused else []
    return "  ".join(parts)


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
