"""States on which two sources disagree. At most one of them is right, so the report is not ok without a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..facts.merge import Conflict
from ..facts.reason import Reason
from ..facts.records import Fact, NotChecked
from ..facts.states import STATES
from ..report import Finding
from .snapshot import Snapshot

_HOW = "read it once more"


def disagreements(snapshot: Snapshot, found: Iterable[Finding]) -> Iterator[NotChecked]:
    """One record for each state with two values, if no finding is about one of them."""
    reported = {cite.source for one in found if one.severity != "info" for cite in one.evidence}
    for one in snapshot.conflicts:
        if one.field not in STATES.get(type(one.kept), ()):
            continue
        cites = (fact.cites.get(one.field) for fact in (one.kept, one.other))
        if not any(cite and cite.source in reported for cite in cites):
            yield _gap(one)


def _gap(conflict: Conflict) -> NotChecked:
    kept, other = (_said(fact, conflict.field) for fact in (conflict.kept, conflict.other))
    return NotChecked(
        what=f"{type(conflict.kept).__name__}.{conflict.field}",
        subject=conflict.kept.key,
        reason=Reason.CONTRADICTED,
        detail=f"{kept}, but {other}",
        how=_HOW,
    )


def _said(fact: Fact, field: str) -> str:
    cite = fact.cites.get(field)
    return f"{cite.text!r} ({cite.source})" if cite else f"{getattr(fact, field)} (the driver)"
