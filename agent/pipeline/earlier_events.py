"""Log lines that the kernel's log no longer holds. The ring buffer overwrites its oldest lines, which repairs nothing.

The service keeps these events for a day, and then as long as a finding cites them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...models.diagnosis.hysteresis import Histories
from ...models.facts.machine import Event, Node
from ...models.facts.records import Evidence, Record
from ...models.rules.core.log_history import DAY, EPOCH, event_evidence

_MOST = 2000  # events; the oldest ones are dropped


def of_this_boot(
    earlier: Iterable[Event],
    collected: Mapping[str, Sequence[Record]],
    now: float,
    boot_id: str | None,
    accepted: float | None,
    histories: Histories,
) -> tuple[Event, ...]:
    """The events that the logs hold, and the `earlier` ones that they no longer hold.

    `boot_id` is the boot of the earlier events. Those of another boot, and those before an acceptance (`accepted`, in
    seconds since 1970), are dropped; after a day, also those that no finding of the `histories` cites.
    """
    present = {event.key: event for event in _events(collected.values())}
    node = next(_nodes(collected.values()), Node(key="node"))
    if None not in (boot_id, node.boot_id) and boot_id != node.boot_id:
        return tuple(present.values())
    cited, lost = _cited(histories), list[Event]()
    for event in (one if one.at is None else replace(one, at=min(one.at, now)) for one in earlier):
        if event.key in present:
            present[event.key] = _continued(event, present[event.key])
        elif not _is_ended(event, node.booted, accepted) and (_is_recent(event, now) or event_evidence(event) in cited):
            lost.append(event)
    lost.sort(key=lambda one: one.at or 0.0)
    return (*lost[-_MOST:], *present.values())


def without_events(collected: Mapping[str, Sequence[Record]]) -> Iterator[Record]:
    """All other records."""
    return (one for records in collected.values() for one in records if not _is_live(one))


def _events(several: Iterable[Sequence[Record]]) -> Iterator[Event]:
    return (one for records in several for one in records if isinstance(one, Event) and _is_live(one))


def _nodes(several: Iterable[Sequence[Record]]) -> Iterator[Node]:
    """The node, as soon as one record has its boot."""
    return (one for records in several for one in records if isinstance(one, Node) and (one.boot_id or one.booted))


def _is_live(record: Record) -> bool:
    """Whether it is an event of a log that reaches to now."""
    return isinstance(record, Event) and record.until is None


def _is_ended(event: Event, booted: float | None, accepted: float | None) -> bool:
    """Whether an event that the log no longer holds is of an earlier boot, or the node was accepted after it."""
    if event.at is None or event.at <= EPOCH:
        return False
    return any(end is not None and event.at <= end for end in (booted, accepted))


def _is_recent(event: Event, now: float) -> bool:
    return event.at is None or event.at <= EPOCH or now - event.at <= DAY


def _cited(histories: Histories) -> frozenset[Evidence]:
    """The evidence of all findings that are more than history."""
    findings = (one for history in histories.values() for one in history.findings if one.severity != "info")
    return frozenset(line for finding in findings for line in finding.evidence)


def _continued(earlier: Event, now: Event) -> Event:
    """The event in the log with what the log lost of it: its first line and its counts."""
    if earlier == now:
        return now
    near = earlier.at is not None and now.at is not None and now.at - earlier.at <= DAY
    return replace(
        now,
        count=_most(earlier.count, now.count),
        first=min((one for one in (earlier.first, now.first) if one is not None), default=None),
        bursts=_most(earlier.bursts, now.bursts) if near else now.bursts,
    )


def _most(*counts: int | None) -> int | None:
    return max((one for one in counts if one is not None), default=None)
