"""What the user has chosen on the screen, and how keys change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...models.traffic.selection import ORDERS, Choice

_PAGE = 10  # lines
_LONGEST = 40  # characters of a filter
HELP = (
    ("q", "quit"),
    ("p", "pause"),
    ("s", "sort"),
    ("/", "filter"),
    ("t", "tree"),
    ("a", "all"),
    ("g", "GPUs"),
    ("up/down", "scroll"),
)


class Controls(Struct, frozen=True, kw_only=True):
    """The present choices."""

    choice: Choice = Choice()
    typing: bool = False  # keys go into the filter
    paused: bool = False
    as_tree: bool = False
    gpus: bool = True  # show the clocks of GPUs
    first: int = 0  # number of the first line that is shown
    ended: bool = False


def _chosen(controls: Controls, **changes: Any) -> Controls:
    return replace(controls, choice=replace(controls.choice, **changes), first=0)


def _next_order(controls: Controls) -> Controls:
    order = ORDERS[(ORDERS.index(controls.choice.order) + 1) % len(ORDERS)]
    return replace(_chosen(controls, order=order), as_tree=False)


def _scrolled(by: int) -> Callable[[Controls], Controls]:
    return lambda controls: replace(controls, first=max(0, controls.first + by))


_KEYS: Mapping[str, Callable[[Controls], Controls]] = {
    "q": lambda one: replace(one, ended=True),
    "p": lambda one: replace(one, paused=not one.paused),
    " ": lambda one: replace(one, paused=not one.paused),
    "s": _next_order,
    "/": lambda one: replace(one, typing=True, first=0),
    "t": lambda one: replace(one, as_tree=not one.as_tree, first=0),
    "a": lambda one: _chosen(one, every=not one.choice.every),
    "g": lambda one: replace(one, gpus=not one.gpus, first=0),
    "escape": lambda one: _chosen(one, text=""),
    "up": _scrolled(-1),
    "k": _scrolled(-1),
    "down": _scrolled(1),
    "j": _scrolled(1),
    "page up": _scrolled(-_PAGE),
    "page down": _scrolled(_PAGE),
    "home": lambda one: replace(one, first=0),
}


def pressed(controls: Controls, key: str) -> Controls:
    """The choices after a key: a character, or the name of a key."""
    if controls.typing:
        return _typed(controls, key)
    change = _KEYS.get(key)
    return change(controls) if change else controls


def _typed(controls: Controls, key: str) -> Controls:
    text = controls.choice.text
    if key in ("enter", "escape"):
        return _chosen(replace(controls, typing=False), text="" if key == "escape" else text)
    if key == "backspace":
        return _chosen(controls, text=text[:-1])
    if len(key) == 1 and key.isprintable() and len(text) < _LONGEST:
        return _chosen(controls, text=text + key)
    return controls
