"""Missing data of an interrupted source, under the names by which rules request data."""

from __future__ import annotations

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from .source import Source


def gaps(
    source: Source, reason: Reason, detail: str, how: str | None = None, path: str | None = None
) -> tuple[NotChecked, ...]:
    """One NotChecked for each kind of fact that the source provides."""
    return tuple(
        NotChecked(what=what, subject="node", reason=reason, detail=detail, path=path, how=how)
        for what in source.provides or (source.name,)
    )
