"""What is not known where a source was cut off: in the words in which rules say what they need."""

from __future__ import annotations

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from .source import Source


def gaps(
    source: Source, reason: Reason, detail: str, how: str | None = None, path: str | None = None
) -> tuple[NotChecked, ...]:
    """One for each of what the source would have said."""
    return tuple(
        NotChecked(what=what, subject="node", reason=reason, detail=detail, path=path, how=how)
        for what in source.provides or (source.name,)
    )
