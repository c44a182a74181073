"""Everything known about a node at one time: all that a rule may read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

from .merge import Conflict, Facts
from .report import Context, Origin
from .said import Fact, Flow, NotChecked, Observation, Run
from .site import Machine, Site
from .topology import Topology

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True)
class Case:
    """Merged facts, what they make (topology, machine), and what they are judged beside (site, past, baseline)."""

    facts: Facts
    conflicts: tuple[Conflict, ...]
    topology: Topology
    observations: tuple[Observation, ...]
    not_checked: tuple[NotChecked, ...]
    runs: tuple[Run, ...]
    machine: Machine | None
    matched_by: str | None  # how the machine was recognised
    site: Site
    past: tuple[Observation, ...]
    baseline: tuple[Observation, ...]
    now: float  # seconds since 1970
    origin: Origin
    context: Context

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What rules worked out of this case once, by their own names for it."""
        return {}

    @cached_property
    def earlier(self) -> Mapping[tuple[Flow | str, str], tuple[Observation, ...]]:
        """The past by what it is about and the quantity, oldest first."""
        series: dict[tuple[Flow | str, str], list[Observation]] = defaultdict(list)
        for one in sorted(self.past, key=lambda one: one.at):
            series[one.about, one.quantity].append(one)
        return {key: tuple(several) for key, several in series.items()}

    @cached_property
    def observed(self) -> Mapping[Flow | str, tuple[Observation, ...]]:
        """The observations, by what they are about."""
        series: dict[Flow | str, list[Observation]] = defaultdict(list)
        for one in self.observations:
            series[one.about].append(one)
        return {about: tuple(several) for about, several in series.items()}

    def of(self, kind: type[F]) -> Mapping[str, F]:
        """The facts of one kind, by key."""
        return cast("Mapping[str, F]", self.facts.get(kind, {}))
