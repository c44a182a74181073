"""Everything known about a node at one time. Rules read nothing else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import Any, TypeVar

from msgspec import Struct

from ..facts.machine import Node, Pci
from ..facts.merge import Conflict, Facts
from ..facts.pci_classes import kind_of
from ..facts.records import Fact, Flow, NotChecked, Observation, Run
from ..graph.topology import Topology
from ..report import Context, Origin
from ..site.schema import Machine, Site
from .inventory import Inventory

F = TypeVar("F", bound=Fact)
T = TypeVar("T")
_NONE: Mapping[str, Any] = {}


class Snapshot(Struct, frozen=True, dict=True):
    """Merged facts, topology and machine type, and the data for comparison (site file, past, baseline)."""

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
    inventory: Inventory | None = None  # what was there before
    listed: frozenset[str] = frozenset()  # addresses of GPUs that a driver listed earlier in this run of the service
    accepted: float | None = None  # when an operator accepted the node as good, in seconds since 1970

    @cached_property
    def _computed(self) -> dict[Callable[[Snapshot], Any], Any]:
        """The results of functions with the decorator `once_per_snapshot`."""
        return {}

    @cached_property
    def earlier(self) -> Mapping[tuple[Flow | str, str], tuple[Observation, ...]]:
        """Past observations by subject and quantity, oldest first.

        Observations from before the node was accepted are ignored. If a counter has none since then, its value at
        acceptance is the only entry.
        """
        series: dict[tuple[Flow | str, str], list[Observation]] = defaultdict(list)
        for one in sorted(self.past, key=lambda one: one.at):
            if self.accepted is None or one.at > self.accepted:
                series[one.about, one.quantity].append(one)
        past = {key: tuple(several) for key, several in series.items()}
        return {**{key: (one,) for key, one in self.when_accepted.items()}, **past}

    @cached_property
    def when_accepted(self) -> Mapping[tuple[Flow | str, str], Observation]:
        """The counters at acceptance. Empty for a node that has rebooted since: its counters restart."""
        node = self.of(Node).get("node")
        booted = node.booted if node else None
        counts = [one for one in self.baseline if isinstance(one.about, str)]
        return {(one.about, one.quantity): one for one in counts if booted is None or one.at >= booted}

    @cached_property
    def observed(self) -> Mapping[Flow | str, tuple[Observation, ...]]:
        """The observations by subject."""
        series: dict[Flow | str, list[Observation]] = defaultdict(list)
        for one in self.observations:
            series[one.about].append(one)
        return {about: tuple(several) for about, several in series.items()}

    @cached_property
    def latest(self) -> Mapping[tuple[Flow | str, str], Observation]:
        """The latest observation of each subject and quantity."""
        return {(one.about, one.quantity): one for one in sorted(self.observations, key=lambda one: one.at)}

    def functions(self, kind: str) -> tuple[Pci, ...]:
        """The PCI functions of one kind: gpu, nic, nvswitch ... (pci_classes.py)."""
        return self._functions.get(kind, ())

    @cached_property
    def _functions(self) -> Mapping[str, tuple[Pci, ...]]:
        kinds: dict[str, list[Pci]] = defaultdict(list)
        for function in self.of(Pci).values():
            kinds[kind_of(function)].append(function)
        return {kind: tuple(several) for kind, several in kinds.items()}

    def of(self, kind: type[F]) -> Mapping[str, F]:
        """The facts of one kind, by key."""
        return self.facts.get(kind, _NONE)  # type: ignore[return-value]  # the facts of a kind have this kind


def once_per_snapshot(compute: Callable[[Snapshot], T]) -> Callable[[Snapshot], T]:
    """Decorator: compute the result once per snapshot and return the stored result on further calls."""

    @wraps(compute)
    def cached(snapshot: Snapshot) -> T:
        computed = snapshot._computed
        try:
            result: T = computed[compute]
        except KeyError:
            result = computed[compute] = compute(snapshot)
        return result

    return cached
