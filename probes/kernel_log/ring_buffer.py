"""Kernel log lines about links and devices since boot, from the ring buffer and, if necessary, the journal.

Sources: kernel documentation, ABI/testing/dev-kmsg; journalctl(1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ...models.facts.machine import Event
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from .bonds import is_contradicted
from .messages import without_lone_ends
from .patterns import events_in, group_events, merged

KMSG, STAT = "dev/kmsg", "proc/stat"
_RECORD = re.compile(r"(?P<head>[0-9]{1,9},(?P<sequence>[0-9]{1,20}),(?P<microseconds>[0-9]{1,15}),[^;]*;)(?P<text>.*)")
_DEADLINE = 10.0  # seconds
_BOOTED = 300e6  # microseconds since boot: lines lost before this time only concern the boot
_DAY = 86400e6  # microseconds: lost lines that are older are not requested from the journal
_HOW = "run as root, add the user to the group systemd-journal or adm, or set kernel.dmesg_restrict to 0"


def read_kernel_log(host: Host) -> Iterator[Record]:
    """Yield an `Event` for each group of equal lines that match patterns.py, since boot.

    The source is /dev/kmsg. The journal replaces it if this user cannot read it, and supplies the beginning if the
    buffer has lost it. If both fail, yields a NotChecked. Without a log (in a container) yields nothing.
    """
    try:
        log = host.read(KMSG)
    except Unreadable as refusal:
        yield from _from_journal(host, refusal)
        return
    boot, lines = _boot_time(host), _records(log or "")
    events = list(group_events(((boot + int(us) / 1e6, text) for us, text in lines), KMSG))
    if start := _lost_before(log or "", (host.now() - boot) * 1e6 if boot else None):
        earlier = list(host.call("journal", str(start), deadline=_DEADLINE))
        events = list(merged((one for one in earlier if isinstance(one, Event)), events))
        yield from (_cut_short(one, start) for one in earlier if isinstance(one, NotChecked))
    yield from _public(events, host)


def relevant(log: str) -> str:
    """Return only the records that this module evaluates; the others contain private data of the machine's owner.

    The result starts with the head of the first record, which holds its number and time, if the log has lost its
    beginning, or if the result would look like such a log.
    """
    found = [record for line in log.splitlines() if (record := _RECORD.match(line))]
    numbered = ((float(number), _plain(record["text"])) for number, record in enumerate(found))
    pairs = list(events_in(numbered))
    kept = {id(event) for event in without_lone_ends(event for _, event in pairs)}
    lines = [found[int(number)][0] for number, event in pairs if id(event) in kept]
    first = _first(log)
    looks_lost = _lost_before(log, None) is not None or _lost_before("\n".join(lines), None) is not None
    if first and looks_lost and first[0] not in lines[:1]:
        lines.insert(0, first["head"])
    return "\n".join(lines)


def boot_line(stat: str) -> str:
    """Return the only line of proc/stat that this module evaluates."""
    return "\n".join(line for line in stat.splitlines() if line.startswith("btime "))


def _records(log: str) -> Iterator[tuple[str, str]]:
    """Yield microseconds since boot and text of each record. Lines that begin with a space continue the last record."""
    for line in log.splitlines():
        if record := _RECORD.match(line):
            yield record["microseconds"], _plain(record["text"])


def _plain(text: str) -> str:
    r"""Replace "\x0a", which joins the lines of a record, by a space."""
    return text.replace("\\x0a", " ")


def _first(log: str) -> re.Match[str] | None:
    return next((record for line in log.splitlines() if (record := _RECORD.match(line))), None)


def _lost_before(log: str, uptime: float | None) -> int | None:
    """Return the start of the log in microseconds since boot, if relevant earlier lines are lost; else None."""
    first = _first(log)
    if first is None or int(first["sequence"]) == 0 or int(first["microseconds"]) <= _BOOTED:
        return None
    start = int(first["microseconds"])
    return start if uptime is None or uptime - start < _DAY else None


def _cut_short(lost: NotChecked, start: int) -> NotChecked:
    why = f"the kernel's buffer begins {start / 3.6e9:.1f} hours after boot; the journal before: {lost.why}"
    return NotChecked(what="Event", subject="node", reason=lost.reason, detail=why, how=_HOW)


def _from_journal(host: Host, refusal: Unreadable) -> Iterator[Record]:
    """Yield the journal's events instead of the buffer's."""
    records = list(host.call("journal", deadline=_DEADLINE))
    for record in records:
        if isinstance(record, NotChecked):
            reason = record.reason if record.reason is Reason.NO_ANSWER else refusal.reason
            detail = f"{refusal.why}; journal: {record.why}"
            yield NotChecked(what="Event", subject="node", reason=reason, path=KMSG, detail=detail, how=_HOW)
        elif not isinstance(record, Event):
            yield record
    events = (record for record in records if isinstance(record, Event))
    yield from _public(events, host)


def _public(events: Iterable[Event], host: Host) -> Iterator[Event]:
    """The events that count, without private words."""
    if counted := [*without_lone_ends(event for event in events if not is_contradicted(event, host))]:
        from .private_words import without_private_words  # imported only for an event: it compiles many patterns

        yield from without_private_words(counted)


def _boot_time(host: Host) -> float:
    """Return the boot time in seconds since 1970. If it cannot be read, 0, so that event times count from boot."""
    try:
        found = re.search(r"^btime ([0-9]{1,11})$", host.read(STAT) or "", re.MULTILINE)
    except Unreadable:
        return 0.0
    return float(found[1]) if found else 0.0
