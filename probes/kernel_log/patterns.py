"""Events of kernel log lines: the events parsed from lines, and groups of equal events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ...models.catalog.log_messages import KERNEL, Entry, disk_name
from ...models.facts.machine import Event
from ...models.facts.records import Evidence
from ...models.facts.units import from_gigabits
from .forms import FORMS
from .messages import catalog, message_event, present, times_of

_HOUR, _DAY = 3600.0, 86400.0  # seconds
_SILENCE = 180.0  # seconds between two bursts of lines (NVIDIA/NVSentinel, health-events-analyzer: burstWindow)
_BLOCK = 4096  # lines
LONGEST = 500  # characters of a line that are parsed and stored
_MILD = ("Non-fatal", "Nonfatal", "Non-Fatal", "CE")


def contains_event(line: str) -> bool:
    """Whether a line, possibly with a time stamp, contains an event. It is a quick filter before event_of()."""
    line = line[: 2 * LONGEST]
    return any(form.needle in line and form.pattern.search(line) for form in FORMS)


def event_of(text: str, messages: Sequence[Entry] = ()) -> Event | None:
    """Return the event of a line without its time and key; None if neither a form nor a message matches."""
    text = text[:LONGEST]
    for form in FORMS:
        if form.needle in text and (found := form.pattern.search(text)):
            return _event(form.kind, text, found.groupdict())
    return message_event(text, messages) if messages else None


def events_in(lines: Iterable[tuple[float, str]]) -> Iterator[tuple[float, Event]]:
    """Yield the events of kernel log records, with their times. The catalog is searched for many lines at once."""
    remaining = iter(lines)
    while block := list(islice(remaining, _BLOCK)):
        messages = present("\n".join(text for _, text in block), catalog(*KERNEL))
        yield from ((at, event) for at, text in block if (event := _event_of_kernel(text, messages)))


def _event_of_kernel(text: str, messages: Sequence[Entry]) -> Event | None:
    """The event of a whole record, if no user can have chosen its text."""
    event = event_of(text, messages)
    if event is None or (event.kind or "").endswith(" detail"):  # the log has the line before it
        return None
    from .user_text import is_of_user  # imported only for an event: it compiles long patterns

    return None if is_of_user(text) else event


def _event(kind: str, text: str, groups: Mapping[str, str | None]) -> Event:
    """Return the event of a matched line, with an empty key."""
    fatal, link = groups.get("fatal"), _number(groups.get("link"))
    action = groups.get("action")
    address = groups.get("address") or groups.get("address2")
    if address and address.count(":") == 1:
        address = f"0000:{address}"
    if address and "." not in address:
        address = f"{address}.0"
    address = address.lower() if address else None
    return Event(
        key="",
        kind=kind,
        code=int(action, 16) if action else _number(groups.get("code")),
        subject=address or _named(groups),
        text=text,
        fatal=None if fatal is None else fatal not in _MILD,
        link=link if link is None or link >= 0 else None,
        count=(_number(groups.get("count")) or 1) * times_of(text),
        name=groups.get("name"),
        port=groups.get("port"),
        rate=_rate(groups.get("rate")),
        able=_rate(groups.get("able")),
    )


def _named(groups: Mapping[str, str | None]) -> str:
    """Return the kernel's name of a device without a PCI address."""
    if (controller := groups.get("memory")) is not None:
        return f"mc{int(controller)}"
    if (cpu := groups.get("cpu")) is not None:
        return f"cpu{int(cpu)}"
    subject = groups.get("subject") or "node"
    return "nvidia" if subject in ("NVRM", "NVIDIA") else disk_name(subject)


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _rate(gigabits: str | None) -> float | None:
    return from_gigabits(float(gigabits)) if gigabits else None


class _Series(Struct):
    """Equal events: the latest one, its time, and the time and count of each."""

    last: Event
    at: float
    times: list[tuple[float, int]] = field(default_factory=list)


def group_events(lines: Iterable[tuple[float, str]], source: str) -> Iterator[Event]:
    """Yield one `Event` for each group of equal events in the lines: a storm of 50,000 lines is one event.

    `lines` are pairs of time (seconds since 1970) and text. Events are in the order of first occurrence. Evidence cites
    `source`.
    """
    return group(events_in(lines), source)


def group(events: Iterable[tuple[float, Event]], source: str) -> Iterator[Event]:
    """Yield one `Event` for each group of equal events, as `group_events`."""
    series: dict[tuple[Any, ...], _Series] = {}
    for at, event in events:
        same = series.setdefault(_identity(event), _Series(event, at))
        if at >= same.at:
            same.last, same.at = event, at
        same.times.append((at, event.count or 1))
    for identity, same in series.items():
        yield replace(
            same.last,
            key=" ".join(str(part) for part in identity if part is not None),
            at=same.at,
            count=sum(count for _, count in same.times),
            first=min(at for at, _ in same.times),
            recent=sum(count for at, count in same.times if at >= same.at - _HOUR),
            bursts=_bursts([at for at, _ in same.times if at >= same.at - _DAY]),
            cites={"text": Evidence(source, same.last.text or "")},
        )


def _bursts(times: list[float]) -> int:
    """Return the number of bursts: a silence of three minutes ends a burst."""
    times.sort()
    return 1 + sum(later - before > _SILENCE for before, later in pairwise(times))


def merged(earlier: Iterable[Event], later: Iterable[Event]) -> Iterator[Event]:
    """Merge the events of the two parts of a log, adding the counts of equal events."""
    events = {event.key: event for event in earlier}
    for event in later:
        before = events.get(event.key)
        events[event.key] = event if before is None else _sum(before, event)
    yield from events.values()


def _sum(before: Event, after: Event) -> Event:
    near = (before.first or 0) >= (after.at or 0) - _HOUR
    today = (before.at or 0) >= (after.at or 0) - _DAY
    one = (after.first or 0) - (before.at or 0) <= _SILENCE  # the last burst before goes on
    return replace(
        after,
        count=(before.count or 1) + (after.count or 1),
        first=before.first,
        recent=(after.recent or 1) + (before.recent or 1 if near else 0),
        bursts=(after.bursts or 1) + ((before.bursts or 1) - one if today else 0),
    )


def _identity(event: Event) -> tuple[Any, ...]:
    """Return the fields that identify equal events. Their text is the event's key."""
    grade = {True: "fatal", False: "mild", None: None}[event.fatal]
    link = None if event.link is None else f"link{event.link}"
    rate = None if event.rate is None else f"{event.rate:.0f}"  # a link that comes back can be slower than before
    return (event.kind, event.code, event.subject, event.name, link, grade, event.port, rate)
