"""Which links of a view are shown, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from .view import Traffic

Order: TypeAlias = Literal["name", "used", "in", "out", "errors"]
ORDERS: tuple[Order, ...] = ("name", "used", "in", "out", "errors")
_VALUES: Mapping[Order, Callable[[Traffic], float | None]] = {
    "used": lambda one: one.used,
    "in": lambda one: one.received,
    "out": lambda one: one.sent,
    "errors": lambda one: sum(one.risen.values()),
}


class Choice(Struct, frozen=True, kw_only=True):
    """What a user wants to see."""

    order: Order = "name"
    text: str = ""  # in name, kind or product of a link
    every: bool = False  # also links whose bytes are not counted and that have no fault


def selected(links: Iterable[Traffic], choice: Choice) -> list[Traffic]:
    """The chosen links. Except for "name", the highest value is the first; links without a value are the last."""
    text = choice.text.casefold()
    found = [one for one in links if (choice.every or one.has_news) and _contains(one, text)]
    value = _VALUES.get(choice.order)
    return sorted(found, key=lambda one: _rank(value(one))) if value else found


def _contains(one: Traffic, text: str) -> bool:
    carrier = one.carrier
    return any(text in part.casefold() for part in (carrier.name, carrier.subject, carrier.kind, carrier.product))


def _rank(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0.0)
