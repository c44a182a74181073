"""Driver failures that only the kernel's log shows, in dumps: GPUs that failed to start, and refused programs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts.gpu import Driver
from ...facts.machine import Event
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.log_history import event_evidence, gpu_at, has_events, is_history, logged, since
from ..core.rule import Rule
from .driver import ONE_GPU, UPDATED
from .missing import gone

_UNNAMED = "gpu"  # of lines in which a person replaced the address
_CLIENT = re.compile(
    r"API mismatch(?:: .{0,40}client .{0,40}has (?:the )?version ([0-9]{3}(?:\.[0-9]{1,4}){1,3}))?", re.IGNORECASE
)


def in_dumps(snapshot: Snapshot) -> bool:
    """Dumps may have only the kernel's log. On a machine the driver shows the same, so an unread log is no gap."""
    return snapshot.origin == "dumps"


def failed(snapshot: Snapshot, event: Event) -> bool:
    """In dumps, select failed GPUs that only the kernel's log shows."""
    unseen = snapshot.origin == "dumps" and not gpu_at(snapshot, event.subject) and event.subject not in gone(snapshot)
    return unseen and event.kind == "gpu init failed" and (":" in (event.subject or "") or event.subject == _UNNAMED)


def unstarted(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """The driver did not start on the GPU, or found it off the bus without an Xid (NVIDIA/NVSentinel#155)."""
    text = event.text or ""
    off = "fallen off" in text or (text.startswith("NVRM: The NVIDIA GPU") and has_events(snapshot, "gpu fell off"))
    name = "a GPU" if event.subject == _UNNAMED else f"the GPU at {event.subject}"
    yield Finding(
        code="gpu-missing" if off else "gpu-driver-failed",
        severity="info" if is_history(snapshot, event) else "critical",
        confidence="likely",
        subject=event.subject or "node",
        message=f"{name} "
        + (
            "fell off the bus: the driver gets no answer from it" if off else "cannot be used: its driver did not start"
        ),
        expected="an answer",
        observed="none",
        cause="power, seating, firmware, or a driver that does not know the product; the log's next lines say more",
        case=None if off else ONE_GPU,
        since=since(event),
        evidence=logged(snapshot, event.subject or ""),
    )


def refused(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """The module refused a program whose library has another version."""
    found = _CLIENT.search(event.text or "")
    if found and not any(driver.failure for driver in snapshot.of(Driver).values()):
        yield Finding(
            code="driver-mismatch",
            severity="info" if is_history(snapshot, event) else "warning",
            subject="node",
            message="the NVIDIA module refused a program whose library is "
            + (f"version {found[1]}: versions differ" if found[1] else "of another version"),
            observed=found[1],
            cause=UPDATED,
            since=since(event),
            evidence=(event_evidence(event),),
        )


RULES = (
    Rule("gpu-driver-failed", Event, ("kind",), unstarted, failed, in_dumps),
    Rule(
        "driver-mismatch", Event, ("kind",), refused, lambda snapshot, event: event.kind == "gpu init failed", in_dumps
    ),
)
