"""A rule: one row of the table. What its code means and how grave it is stands in catalog/codes.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from ...facts.records import Fact, NotChecked
from ...facts.registry import kind_name
from ...inventory.snapshot import Snapshot
from ...report import Finding

Evaluate: TypeAlias = Callable[[Snapshot, Any], Iterable[Finding | NotChecked]]


def anything(snapshot: Snapshot, fact: Any) -> bool:
    """Every thing of the kind is judged."""
    return True


def anywhere(snapshot: Snapshot) -> bool:
    """Every machine may have it."""
    return True


@dataclass(frozen=True)
class Rule:
    """Judged for each thing whose needs were read; so what nobody could read is never ok, by construction.

    `needs` are fields of the thing ("width"); with a question mark ("carrier?") it is judged without them too, and
    missing them is a gap all the same. Or they are other kinds or their fields ("Port", "Pci.pci_class"): where one
    of those could not be read of anything, the rule is not judged at all. `where` narrows the things; of one that was
    read in part it says whether the rule *might* concern it. `machines` narrows where what could not be read is missed.
    What a judge yields as NotChecked it could not tell.
    """

    code: str
    over: type[Fact]
    needs: tuple[str, ...]
    evaluate: Evaluate
    where: Callable[[Snapshot, Any], bool] = anything
    machines: Callable[[Snapshot], bool] = anywhere

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Fields of the thing without which it is not judged."""
        return tuple(need for need in self.needs if need[0].islower() and not need.endswith("?"))

    @cached_property
    def wanted(self) -> frozenset[str]:
        """What a NotChecked on a thing is called that leaves a gap in judging it: "Pci", "Pci.width"."""
        kind = kind_name(self.over)
        return frozenset({kind, *(f"{kind}.{need.rstrip('?')}" for need in self.needs if need[0].islower())})

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Kinds and fields of other things: "Port", "Pci.pci_class"."""
        return frozenset(need for need in self.needs if not need[0].islower())
