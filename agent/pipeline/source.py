"""A source: what a service or a command reads from a machine, under a public name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import TypeAlias

from msgspec import Struct

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...probes.host.host import Host

Read: TypeAlias = Callable[[Host], Iterable[Record]]


class Interval(Enum):
    """How often a service reads a source. The configuration has the seconds."""

    CYCLE = auto()  # in each cycle
    SLOW = auto()  # values that change when an operator changes them
    DISCOVERY = auto()  # values that last until a device, a driver or the machine starts again


class Source(Struct, frozen=True):
    """A function that reads a machine, with the name that captures, runs and metrics show."""

    name: str
    read: Read
    interval: Interval = Interval.CYCLE
    provides: tuple[str, ...] = ()  # kinds of facts, or fields if another source provides the rest
    probes_left: int | None = None  # of a probe: how many probes follow it

    def not_checked(
        self, reason: Reason, detail: str, how: str | None = None, path: str | None = None
    ) -> tuple[NotChecked, ...]:
        """One NotChecked for each kind of fact that the source provides, if it was interrupted."""
        return tuple(
            NotChecked(what=what, subject="node", reason=reason, detail=detail, path=path, how=how)
            for what in self.provides or (self.name,)
        )
