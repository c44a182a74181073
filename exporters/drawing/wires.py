"""A drawn connection of one link, or of parallel links."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...models.graph.topology import INSIDE, Link
from .states import State, States

_RATELESS = frozenset({"internal", "interconnect", *INSIDE}) - {"port"}  # connections that have no rate


class Wire(Struct, frozen=True):
    """One link, or parallel links. Rates in bytes per second; None: unknown."""

    links: frozenset[str]  # ids
    label: str
    rated: float | None
    trained: float | None
    state: State
    bare: bool  # without independent evidence
    numbers: tuple[int, ...] = ()  # of its findings

    @property
    def style(self) -> str:
        """The style of its label."""
        return self.state if self.state in ("warning", "critical") else "rate"


def wire_of(states: States, links: Sequence[Link], label: str, end: State = "good") -> Wire:
    """The wire of parallel links. `end`: the state of the port that the link ends at."""
    found = states.of_links(links)
    if found == "unread" and links[0].kind in _RATELESS:
        found = "good"
    if found not in ("warning", "critical") and end in ("warning", "critical"):
        found = end
    limits = any(link.id in states.bottleneck for link in links)
    return Wire(
        frozenset(link.id for link in links),
        ", ".join(filter(None, (label, "bottleneck" if limits else ""))),
        _sum([link.rated for link in links]),
        _sum([link.trained if link.trained is not None else link.rated for link in links]),
        found,
        any(link.id in states.bare for link in links),
        tuple(sorted({one.number for link in links for one in states.by_link.get(link.id, ())})),
    )


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
