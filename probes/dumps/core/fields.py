"""What an output says of several things, field by field, until all of it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Fact, NotChecked, Record
from ....models.facts.registry import kind_name


@dataclass(slots=True)
class Fields:
    """The fields of each thing with where they stood: the first to say one is believed."""

    facts: dict[tuple[type[Fact], str], dict[str, tuple[Any, Evidence]]] = field(default_factory=dict)
    lost: list[NotChecked] = field(default_factory=list)

    def say(self, kind: type[Fact], key: str, where: Evidence, /, **fields: Any) -> None:
        """There is such a thing; None is not said of it."""
        known = self.facts.setdefault((kind, key), {})
        for name, value in fields.items():
            if value is not None:
                known.setdefault(name, (value, where))

    def take(
        self, kind: type[Fact], key: str, where: Evidence, name: str, text: str, parse: Callable[[str], Any]
    ) -> None:
        """A field from its text. What `parse` does not know (ValueError) was not checked."""
        try:
            self.say(kind, key, where, **{name: parse(text)})
        except ValueError as wrong:
            what = f"{kind_name(kind)}.{name}"
            lost = NotChecked(what=what, subject=key, reason=Reason.UNREADABLE, path=where.source, detail=str(wrong))
            self.lost.append(lost)

    def said(self) -> Iterator[Record]:
        """The facts in the order in which they came up."""
        for (kind, key), known in self.facts.items():
            fields = {name: value for name, (value, _) in known.items()}
            yield kind(key=key, cites={name: where for name, (_, where) in known.items()}, **fields)
        yield from self.lost
