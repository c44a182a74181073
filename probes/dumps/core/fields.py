"""Collects the fields of facts from an output until the end of the output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import GpuPair
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, NotChecked, Record
from ....models.facts.registry import kind_name
from ....models.facts.states import STATES


class FactCollector(Struct):
    """Fields and their citations by kind of fact and key. The first value of a field counts.

    A second value of a state ("Active", then "Down") makes a second record: models/facts/merge.py tells which counts.
    """

    facts: dict[tuple[type[Fact], str], dict[str, tuple[Any, Evidence]]] = field(default_factory=dict)
    others: dict[tuple[type[Fact], str, str, Any], Evidence] = field(default_factory=dict)
    not_checked: list[NotChecked] = field(default_factory=list)

    def add(self, kind: type[Fact], key: str, where: Evidence, /, **fields: Any) -> None:
        """Add a fact, if it is new, and those fields that are not None."""
        known = self.facts.setdefault((kind, key), {})
        for name, value in fields.items():
            another = value is not None and known.setdefault(name, (value, where))[0] != value
            if another and kind is not GpuPair and name in STATES.get(kind, ()):  # a pair has two directions
                self.others.setdefault((kind, key, name, value), where)

    def take(
        self, kind: type[Fact], key: str, where: Evidence, name: str, text: str, parse: Callable[[str], Any]
    ) -> None:
        """Parse one field. If `parse` raises ValueError, a NotChecked records the reason."""
        try:
            self.add(kind, key, where, **{name: parse(text)})
        except ValueError as wrong:
            what = f"{kind_name(kind)}.{name}"
            not_checked = NotChecked(
                what=what, subject=key, reason=Reason.UNREADABLE, path=where.source, detail=str(wrong)
            )
            self.not_checked.append(not_checked)

    def drop_repeats(self, unnamed: str) -> None:
        """Remove unnamed devices ("nvme 2") with the values of an earlier one: the same output was taken again."""
        seen: list[tuple[type[Fact], dict[str, Any]]] = []
        for (kind, key), known in tuple(self.facts.items()):
            values = {name: value for name, (value, _) in known.items()}
            if key.startswith(f"{unnamed} ") and (kind, values) in seen:
                del self.facts[kind, key]
            seen.append((kind, values))

    def records(self) -> Iterator[Record]:
        """The facts in order of first appearance, then the NotChecked records."""
        for (kind, key), known in self.facts.items():
            fields = {name: value for name, (value, _) in known.items()}
            yield kind(key=key, cites={name: where for name, (_, where) in known.items()}, **fields)
        for (kind, key, name, value), where in self.others.items():
            yield kind(key=key, cites={name: where}, **{name: value})
        yield from self.not_checked
