"""Bus errors that the kernel counted and did not write to its log, because there were too many of them.

The kernel writes ten messages in five seconds and then the number of those that it left out (lib/ratelimit.c). The line
does not say whether they were correctable. Often it names no device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ...facts.machine import Event
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ..core.log_history import events
from ..core.wording import gap

_KIND, _CORRECTED = "aer suppressed", "aer corrected"


def with_left_out(snapshot: Snapshot, subjects: Mapping[str, list[Event]]) -> Mapping[str, list[Event]]:
    """The events of each device, with the number of those left out. They count as correctable: most storms are."""
    found = {subject: [*several] for subject, several in subjects.items()}
    for event in events(snapshot, _KIND):
        named = event.subject if event.subject in found else None
        subject = named or (next(iter(found)) if len(found) == 1 else event.subject or "node")
        several = found.setdefault(subject, [])
        place = next((place for place, one in enumerate(several) if one.kind == _CORRECTED), None)
        if place is None:
            several.append(replace(event, kind=_CORRECTED, subject=subject))
        else:
            several[place] = _sum(several[place], event)
    return found


def _sum(one: Event, more: Event) -> Event:
    recent = None if one.recent is None or more.recent is None else one.recent + more.recent
    times = [at for at in (one.first, more.first, one.at, more.at) if at is not None]
    first, last = (min(times), max(times)) if times else (None, None)
    return replace(one, count=(one.count or 1) + (more.count or 1), recent=recent, first=first, at=last)


def left_out(snapshot: Snapshot, subject: str) -> Iterator[NotChecked]:
    """A gap if the log leaves out messages: they may be of another severity or of another device."""
    number = sum(event.count or 1 for event in events(snapshot, _KIND))
    if number and snapshot.origin == "dumps":
        why = f"the kernel left out {number:,} messages about bus errors, and the log does not say which"
        how = "grep . /sys/bus/pci/devices/*/aer_dev_{correctable,nonfatal,fatal}"
        yield from gap(snapshot, "Event", subject, Reason.INCOMPLETE, why, how)
