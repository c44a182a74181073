"""What rules over the kernel log share: when something was, whether it still matters, what was logged of a thing."""

from __future__ import annotations

from ...facts.gpu import Gpu
from ...facts.machine import Event, Pci
from ...facts.records import Evidence
from ...facts.units import as_utc
from ...inventory.snapshot import Snapshot

EPOCH = 1e9  # seconds: below, a time counts from boot
DAY = 86400.0
_TOLD = ("xid", "gpu init failed", "aer", "surprise down")


def events(snapshot: Snapshot, *kinds: str) -> list[Event]:
    """The events of these kinds."""
    return [event for event in snapshot.of(Event).values() if event.kind in kinds]


def logged(snapshot: Snapshot, address: str) -> tuple[Evidence, ...]:
    """What the log says of how a function came to fail: of itself, and of the port above it."""
    function = snapshot.of(Pci).get(address)
    about = {address, function.parent if function else None} - {None}
    found = [event for event in events(snapshot, *_TOLD) if event.subject in about]
    return tuple(proof(event) for event in sorted(found, key=lambda one: one.at or 0.0))


def proof(event: Event) -> Evidence:
    """Where the event stood."""
    return event.cites.get("text", Evidence("kernel log", event.text or event.key))


def since(event: Event) -> str | None:
    """When it was logged first; None where nobody knows when the machine was started."""
    first = event.at if event.first is None else event.first
    return as_utc(first) if first is not None and EPOCH < first < 1e11 else None


def number(events: list[Event]) -> int:
    """How often they were logged."""
    return sum(event.count or 1 for event in events)


def often(count: int) -> str:
    """How often, for a message: ", 5 times"."""
    return f", {count} times" if count > 1 else ""


def old(snapshot: Snapshot, event: Event) -> bool:
    """Whether it is history."""
    return history(snapshot, event) is not None


def history(snapshot: Snapshot, event: Event) -> str | None:
    """Why it is history: a day later, what it left behind has checks of its own; or somebody said since that the node
    is good. A log that was saved ends at its end.
    """
    ours = event.until is None and (event.at or 0.0) > EPOCH
    if ours and event.at is not None and snapshot.accepted is not None and event.at <= snapshot.accepted:
        return f"the node was accepted {as_utc(snapshot.accepted)}, after it"
    end = snapshot.now if ours else event.until
    return "more than a day ago" if event.at is not None and end is not None and end - event.at > DAY else None


def later(snapshot: Snapshot, event: Event, kind: str, subject: str | None, code: int | None = None) -> bool:
    """Whether such a thing was logged of the subject after the event, in the same log: another has another clock."""
    return event.at is not None and any(
        one.at is not None and one.at > event.at and one.subject == subject and one.code == code
        for one in events(snapshot, kind)
        if one.until == event.until
    )


def gpu_at(snapshot: Snapshot, address: str | None) -> Gpu | None:
    """The GPU of a PCI address, as its driver knows it."""
    return next((gpu for gpu in snapshot.of(Gpu).values() if gpu.address == address and address), None)
