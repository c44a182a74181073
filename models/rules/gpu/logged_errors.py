"""Errors that NVIDIA's driver logged about one device, and the finding about them."""

from __future__ import annotations

from msgspec import Struct

from ...facts.gpu import Gpu
from ...facts.machine import Event, Pci
from ...facts.pci_classes import NVIDIA
from ...inventory.snapshot import Snapshot
from ...report import SEVERITIES, Finding, Severity
from ..core.log_history import event_evidence, since, times, total_count
from ..core.wording import function_name, location

DRIVER = "nvidia"
_NODE = "node"


class LoggedError(Struct, frozen=True):
    """A logged error with its meaning. `past` says why it is not a fault any more."""

    event: Event
    severity: Severity
    says: str
    action: str | None
    source: str | None
    past: str | None = None
    of_node: bool = False  # the driver keeps it for the whole node


def worst_first(error: LoggedError) -> tuple[int, bool, float]:
    """A key for sorting: most severe first, then fatal ones, then the newest."""
    return SEVERITIES.index(error.severity), not error.event.fatal, -(error.event.at or 0.0)


def finding_of(snapshot: Snapshot, code: str, word: str, phrase: str, errors: list[LoggedError]) -> Finding:
    """One finding for all logged errors of a device."""
    first, event = errors[0], errors[0].event
    same = [one.event for one in errors if one.event.code == event.code]
    others = sorted({one.event.code or 0 for one in errors} - {event.code})
    links = sorted({one.link for one in same if one.link is not None})
    function = None if first.of_node else snapshot.of(Pci).get(event.subject or "")
    observed = event.code if event.kind != "recovery" else 154
    return Finding(
        code=code,
        kind="event",
        severity=first.severity,
        subject=_NODE if first.of_node else event.subject or _NODE,
        subject_name=function_name(snapshot, function) if function else None,
        fact=f"logged {word} {observed}{f', {total_count(same)} times' if total_count(same) > 1 else ''}: {first.says}",
        message=phrase.format(observed, event.subject)
        + (f", link {', '.join(map(str, links))}" if links else "")
        + f"{times(same)}: {first.says}"
        + (f"; also {word} {', '.join(map(str, others))}" if others else "")
        + (f" ({first.past})" if first.past else ""),
        since=since(min(same, key=lambda one: one.first or one.at or 0.0)) if event.first else since(event),
        observed=observed,
        unit=word.lower(),
        cause=first.says,
        remedy=_remedy(first),
        expected_source=first.source,
        location=location(function, snapshot) if function else {},
        evidence=tuple(dict.fromkeys(event_evidence(one.event) for one in errors)),
    )


def _remedy(error: LoggedError) -> str | None:
    if error.action is None:
        return None
    if error.past:
        return f"Nothing now. If it is logged again: {error.action}."
    return f"{error.action[:1].upper()}{error.action[1:]}."


def has_nvidia(snapshot: Snapshot) -> bool:
    """Whether the machine has or may have NVIDIA devices. Otherwise an unread log is no gap."""
    of_nvidia = any(function.vendor == NVIDIA for function in snapshot.of(Pci).values())
    return of_nvidia or bool(snapshot.of(Gpu)) or any(lost.what == "Pci" for lost in snapshot.not_checked)
