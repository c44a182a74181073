"""Failed tests of other tools. These tools have their own limits. Other rules check the facts behind the tests."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Event
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.log_history import event_evidence
from ..core.rule import Rule


def of_a_test(snapshot: Snapshot, event: Event) -> bool:
    """Select failed tests."""
    return event.kind == "test failed"


def failed(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """Another tool has seen a fault, so the node is not healthy even if no other rule finds anything."""
    yield Finding(
        code="not-enough-evidence",
        severity="info",
        subject=event.subject or "node",
        message=f"{event.name or 'a test'} failed: {event.text}",
        observed="failed",
        cause="the test alone does not tell; findings beside this one may",
        evidence=(event_evidence(event),),
        case="test",
    )


RULES = (Rule("not-enough-evidence", Event, ("text",), failed, of_a_test),)
