"""Functions that rules over the kernel log share: time of an event, whether it is history, events of a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from ...facts.gpu import Gpu
from ...facts.machine import Event, Node, Pci
from ...facts.records import Evidence
from ...facts.units import as_utc
from ...inventory.snapshot import Snapshot, once_per_snapshot

EPOCH = 1e9  # seconds; a smaller time counts from boot
DAY = 86400.0
SILENCE = 180.0  # seconds between two bursts of events (NVIDIA/NVSentinel, health-events-analyzer: burstWindow)
_FAILURES = ("xid", "gpu init failed", "aer", "surprise down")


def events(snapshot: Snapshot, *kinds: str) -> list[Event]:
    """The events of these kinds."""
    if len(kinds) == 1:
        return list(_by_kind(snapshot).get(kinds[0], ()))
    return [event for event in snapshot.of(Event).values() if event.kind in kinds]


def by_subject(found: list[Event]) -> Mapping[str, list[Event]]:
    """Subject, or "node" -> its events in the order of their times."""
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in sorted(found, key=lambda one: one.at or 0.0):
        groups[event.subject or "node"].append(event)
    return groups


def has_events(snapshot: Snapshot, *kinds: str) -> bool:
    """Whether the log has an event of one of these kinds."""
    return any(kind in _by_kind(snapshot) for kind in kinds)


def events_about(snapshot: Snapshot, subject: str | None, *kinds: str) -> list[Event]:
    """The events of these kinds with this subject."""
    return [event for kind in kinds for event in _by_subject(snapshot).get((kind, subject), ())]


@once_per_snapshot
def _by_kind(snapshot: Snapshot) -> Mapping[str | None, list[Event]]:
    found: dict[str | None, list[Event]] = defaultdict(list)
    for event in snapshot.of(Event).values():
        found[event.kind].append(event)
    return dict(found)


@once_per_snapshot
def _by_subject(snapshot: Snapshot) -> Mapping[tuple[str | None, str | None], list[Event]]:
    found: dict[tuple[str | None, str | None], list[Event]] = defaultdict(list)
    for event in snapshot.of(Event).values():
        found[event.kind, event.subject].append(event)
    return dict(found)


def logged(snapshot: Snapshot, address: str) -> tuple[Evidence, ...]:
    """The failures that the log has of a PCI function and of the port above it, oldest first."""
    function = snapshot.of(Pci).get(address)
    about = {address, *([function.parent] if function and function.parent else [])}
    found = [event for subject in sorted(about) for event in events_about(snapshot, subject, *_FAILURES)]
    return tuple(event_evidence(event) for event in sorted(found, key=lambda one: one.at or 0.0))


def event_evidence(event: Event) -> Evidence:
    """The log line of the event."""
    return event.cites.get("text", Evidence("kernel log", event.text or event.key))


def since(event: Event) -> str | None:
    """When the event was first logged, in UTC. None: the time counts from boot and the boot time is not known."""
    first = event.at if event.first is None else event.first
    return as_utc(first) if first is not None and EPOCH < first < 1e11 else None


def total_count(events: list[Event]) -> int:
    """How many times the events were logged in total."""
    return sum(event.count or 1 for event in events)


def times(found: list[Event]) -> str:
    """The count and the first and last time for a message: ", 5 times from … to …". Empty for one event."""
    count = total_count(found)
    if count < 2:
        return ""
    starts = [at for one in found if (at := one.at if one.first is None else one.first) is not None]
    first, last = min(starts, default=0.0), max((one.at for one in found if one.at is not None), default=0.0)
    if last - first < 1:
        return f", {count} times"
    if EPOCH < first < 1e11 and EPOCH < last < 1e11:
        return f", {count} times from {as_utc(first)} to {as_utc(last)}"
    return f", {count} times within {_duration(last - first)}"


def _duration(seconds: float) -> str:
    for unit, factor in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * factor:
            return f"{seconds / factor:.0f} {unit}"
    return f"{seconds:.0f} s"


def bursts(found: list[Event]) -> int:
    """The number of bursts of these events within a day. At least this many: equal events are counted apart."""
    ends = sorted(one.at for one in found if one.at is not None)
    apart = 1 + sum(later - before > SILENCE for before, later in pairwise(ends) if later - before <= DAY)
    return max([apart, *(one.bursts or 1 for one in found)])


def is_history(snapshot: Snapshot, event: Event) -> bool:
    """Whether the event is history."""
    return why_history(snapshot, event) is not None


def why_history(snapshot: Snapshot, event: Event) -> str | None:
    """Why the event is history, as text. None: it is not.

    An event is history after one day, because other rules check its effects; after the node was booted again; or if
    an operator has accepted the node since. For a saved log, the day ends at the end of the log.
    """
    node = snapshot.of(Node).get("node")
    if node and node.booted is not None and event.at is not None and EPOCH < event.at < node.booted:
        return f"the node was booted {as_utc(node.booted)}, after it"
    ours = event.until is None and (event.at or 0.0) > EPOCH
    if ours and event.at is not None and snapshot.accepted is not None and event.at <= snapshot.accepted:
        return f"the node was accepted {as_utc(snapshot.accepted)}, after it"
    end = snapshot.now if ours else event.until
    return "more than a day ago" if event.at is not None and end is not None and end - event.at > DAY else None


def later(snapshot: Snapshot, event: Event, kind: str, subject: str | None, code: int | None = None) -> bool:
    """Whether the same log has a later event of this kind, subject and code. Other logs have other clocks."""
    last = _last(snapshot).get((kind, subject, code, event.until))
    return event.at is not None and last is not None and last > event.at


def is_later(one: Event, other: Event) -> bool:
    """Whether the last line of an event is after the last line of another. Lines without a time are in their order."""
    if one.at is not None and other.at is not None and one.at != other.at:
        return one.at > other.at
    return (one.place or 0) > (other.place or 0)


@once_per_snapshot
def _last(snapshot: Snapshot) -> Mapping[tuple[str | None, str | None, int | None, float | None], float]:
    """The time of the last event of each kind, subject and code in each log."""
    found: dict[tuple[str | None, str | None, int | None, float | None], float] = {}
    for one in snapshot.of(Event).values():
        if one.at is not None:
            key = (one.kind, one.subject, one.code, one.until)
            found[key] = max(found.get(key, one.at), one.at)
    return found


def gpu_at(snapshot: Snapshot, address: str | None) -> Gpu | None:
    """The GPU with a PCI address, as reported by its driver."""
    return _gpus(snapshot).get(address) if address else None


@once_per_snapshot
def _gpus(snapshot: Snapshot) -> Mapping[str | None, Gpu]:
    return {gpu.address: gpu for gpu in reversed(tuple(snapshot.of(Gpu).values()))}
