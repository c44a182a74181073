"""Failed tests of other tools. These tools have their own limits. Other rules check the facts behind the tests."""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog import NOT_ENOUGH_EVIDENCE
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
        code=NOT_ENOUGH_EVIDENCE,
        severity="info",
        subject=event.subject or "node",
        message=f"{event.name or 'a test'} failed: {event.text}",
        observed="failed",
        cause="the test alone does not tell; findings beside this one may",
        evidence=(event_evidence(event),),
        case="test",
    )


def of_wrong_results(snapshot: Snapshot, event: Event) -> bool:
    """Select tests in which a GPU computed wrong results, and others did not."""
    return event.kind == "wrong results"


def wrong(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """A GPU whose results are wrong. The test does not tell whether its memory or its cores are at fault."""
    yield Finding(
        code="gpu-ecc",
        severity="critical",
        confidence="likely",
        subject=event.subject or "node",
        message=f"{event.name or 'a test'} got wrong results from {event.subject or 'a GPU'}: {event.text}",
        expected="0 errors",
        observed=event.text,
        cause="memory or cores of the GPU return wrong data; too little power or cooling can cause it",
        evidence=(event_evidence(event),),
        case="test",
        remedy="Test this GPU alone; read nvidia-smi -q -d ECC and dmesg; replace the GPU if it fails again.",
    )


RULES = (
    Rule(NOT_ENOUGH_EVIDENCE, Event, ("text",), failed, of_a_test),
    Rule("gpu-ecc", Event, ("text",), wrong, of_wrong_results),
)
