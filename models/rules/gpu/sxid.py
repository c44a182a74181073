"""Errors of NVSwitches that NVIDIA's driver logged (SXids). One finding per switch, most severe first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from ...catalog.sxids import sxids
from ...facts.gpu import GpuLink
from ...facts.machine import Event, Pci
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Finding
from ..core.log_history import events_about, later, why_history
from ..core.rule import Rule
from .logged_errors import DRIVER, LoggedError, finding_of, has_nvidia, worst_first


def sxid(snapshot: Snapshot, event: Event) -> Iterator[Finding]:
    """An NVSwitch reported an error. Errors without an effect are "info". Other rules report missing switches."""
    function = snapshot.of(Pci).get(event.subject or "")
    if function.lost if function else event.subject in _far_ends(snapshot) and snapshot.of(Pci):
        return
    found = _switch_errors(snapshot)(event.subject)
    if found and found[0].event is event:
        yield finding_of(snapshot, "nvswitch-error", "SXid", "SXid {} of NVSwitch {}", found)


@once_per_snapshot
def _far_ends(snapshot: Snapshot) -> frozenset[str | None]:
    return frozenset(link.remote for link in snapshot.of(GpuLink).values())


@once_per_snapshot
def _switch_errors(snapshot: Snapshot) -> Callable[[str | None], list[LoggedError]]:
    """The SXids of each NVSwitch, most severe first. Each NVSwitch is evaluated once."""

    @cache
    def of(subject: str | None) -> list[LoggedError]:
        named = events_about(snapshot, subject, "sxid")
        codes = {one.code for one in named}
        details = (one for one in events_about(snapshot, subject, "sxid detail") if one.code not in codes)
        found = (_switch(snapshot, one) for one in (*named, *details))
        return sorted(filter(None, found), key=worst_first)

    return of


def of_switch(snapshot: Snapshot, event: Event) -> bool:
    """Select SXids."""
    return event.kind in ("sxid", "sxid detail")


def _switch(snapshot: Snapshot, event: Event) -> LoggedError | None:
    """The meaning of an SXid. "Fatal" in the log sets the severity, otherwise the catalog does. None: no fault."""
    meaning = sxids().get(event.code or 0)
    severity = meaning.severity if meaning else "info"
    if event.fatal:
        severity = "critical"
    if severity is None:
        return None
    past = why_history(snapshot, event)
    if later(snapshot, event, "driver loaded", DRIVER):
        past = "the driver was loaded again after it"
    if meaning and meaning.ends and later(snapshot, event, "sxid", event.subject, meaning.ends):
        past = "it ended"
    says = meaning.says if meaning else "an error that NVIDIA's tables do not name"
    action = meaning.action if meaning else None
    source = meaning.source if meaning else None
    return LoggedError(event, "info" if past else severity, says, action, source, past)


RULES = (Rule("nvswitch-error", Event, ("kind", "code"), sxid, of_switch, has_nvidia),)
