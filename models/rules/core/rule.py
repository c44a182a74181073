"""A rule: one row of the table. catalog/codes.toml has the meaning and the severity of each code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct

from ...facts.records import Fact, NotChecked
from ...facts.registry import kind_name
from ...inventory.snapshot import Snapshot
from ...report import Finding

Evaluate: TypeAlias = Callable[[Snapshot, Any], Iterable[Finding | NotChecked]]


def anything(snapshot: Snapshot, fact: Any) -> bool:
    """A `where` that accepts every fact."""
    return True


def anywhere(snapshot: Snapshot) -> bool:
    """A `machines` that accepts every machine."""
    return True


class Rule(Struct, frozen=True, dict=True):
    """A check that runs for each fact of the type `over` whose needs were read. So an unread value is never "ok".

    `needs` names fields of the fact ("width"). If a required field was not read, the check does not run for that fact.
    With a question mark ("carrier?") it runs anyway, and the unread field still counts as a gap in coverage. In dumps
    it counts as evaluated only if one of these fields was read. `needs` also names other kinds or their fields ("Port",
    "Pci.pci_class"). If one of these could not be read for any device, the rule does not run at all. With a question
    mark ("Gpu?") it runs anyway, and its earlier findings count as not evaluated.

    `where` selects facts. For a fact that was read in part, it returns whether the rule *might* apply. `machines`
    selects the machines on which an unread value counts as a gap. `evaluate` yields a NotChecked for what it cannot
    decide.
    """

    code: str
    over: type[Fact]
    needs: tuple[str, ...]
    evaluate: Evaluate
    where: Callable[[Snapshot, Any], bool] = anything
    machines: Callable[[Snapshot], bool] = anywhere

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Fields of the fact that must have been read."""
        return tuple(need for need in self.needs if need[0].islower() and not need.endswith("?"))

    @cached_property
    def optional(self) -> tuple[str, ...]:
        """Fields of the fact, and quantities observed of it, of which a dump must show one."""
        return tuple(need.rstrip("?") for need in self.needs if need[0].islower() and need.endswith("?"))

    @cached_property
    def wanted(self) -> frozenset[str]:
        """The names of a NotChecked that is a gap in this rule: "Pci", "Pci.width"."""
        kind = kind_name(self.over)
        return frozenset({kind, *(f"{kind}.{need.rstrip('?')}" for need in self.needs if need[0].islower())})

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Kinds and fields of other facts: "Port", "Pci.pci_class"."""
        return frozenset(need for need in self.needs if not need[0].islower() and not need.endswith("?"))

    @cached_property
    def helpful(self) -> frozenset[str]:
        """Kinds of other facts without which the rule still runs, and may not find what it found before."""
        return frozenset(need.rstrip("?") for need in self.needs if not need[0].islower() and need.endswith("?"))

    @cached_property
    def reads(self) -> frozenset[str]:
        """All kinds and fields that the rule reads."""
        return self.wanted | self.foreign
