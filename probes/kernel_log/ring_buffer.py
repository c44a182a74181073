"""What the kernel logged of links and devices since boot: from its ring buffer, and from the journal where that is not
enough (kernel documentation, ABI/testing/dev-kmsg; journalctl(1)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.machine import Event
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from .patterns import event_of, fold, joined

KMSG, STAT = "dev/kmsg", "proc/stat"
_RECORD = re.compile(r"(?P<head>[0-9]{1,9},(?P<sequence>[0-9]{1,20}),(?P<microseconds>[0-9]{1,15}),[^;]*;)(?P<text>.*)")
_DEADLINE = 10.0  # seconds
_BOOTED = 300e6  # microseconds: what is lost before says how the machine came up
_DAY = 86400e6  # microseconds: what is older is history, and need not be fetched
_HOW = "run as root, add the user to the group systemd-journal or adm, or set kernel.dmesg_restrict to 0"


def read_kernel_log(host: Host) -> Iterator[Record]:
    """An `Event` for everything of kernel_lines.py that the kernel logged since boot, equal ones as one.

    From /dev/kmsg; where that may not be read, from the journal. A buffer that has lost its beginning is completed
    from there too. Where neither says anything, a NotChecked; where there is no log (a container), nothing.
    """
    try:
        log = host.read(KMSG)
    except Unreadable as refusal:
        yield from _from_journal(host, refusal)
        return
    boot, lines = _boot_time(host), _records(log or "")
    events = list(fold(((boot + int(us) / 1e6, text) for us, text in lines), KMSG))
    if start := _lost_before(log or "", (host.now() - boot) * 1e6 if boot else None):
        earlier = list(host.call("journal", str(start), deadline=_DEADLINE))
        events = list(joined((one for one in earlier if isinstance(one, Event)), events))
        yield from (_cut_short(one, start) for one in earlier if isinstance(one, NotChecked))
    yield from events


def relevant(log: str) -> str:
    """The records of a log that are read here: the others tell of its owner, and of nothing that we judge.

    Of a log that has lost its beginning, the head of the first record too: it says when the log begins.
    """
    kept = [line for line in log.splitlines() if (record := _RECORD.match(line)) and event_of(_plain(record["text"]))]
    first = _first(log)
    if first and int(first["sequence"]) and int(first["microseconds"]) > _BOOTED and first[0] not in kept[:1]:
        kept.insert(0, first["head"])
    return "\n".join(kept)


def boot_line(stat: str) -> str:
    """The line of proc/stat that is read here."""
    return "\n".join(line for line in stat.splitlines() if line.startswith("btime "))


def _records(log: str) -> Iterator[tuple[str, str]]:
    """Microseconds since boot and text of each record; lines with a space in front belong to the record before."""
    for line in log.splitlines():
        if record := _RECORD.match(line):
            yield record["microseconds"], _plain(record["text"])


def _plain(text: str) -> str:
    r"""A record of several lines has them joined by "\x0a"."""
    return text.replace("\\x0a", " ")


def _first(log: str) -> re.Match[str] | None:
    return next((record for line in log.splitlines() if (record := _RECORD.match(line))), None)


def _lost_before(log: str, uptime: float | None) -> int | None:
    """Where the log begins, in microseconds since boot, if what came before matters and is no longer in it."""
    first = _first(log)
    if first is None or int(first["sequence"]) == 0 or int(first["microseconds"]) <= _BOOTED:
        return None
    start = int(first["microseconds"])
    return start if uptime is None or uptime - start < _DAY else None


def _cut_short(lost: NotChecked, start: int) -> NotChecked:
    why = f"the kernel's buffer begins {start / 3.6e9:.1f} hours after boot; the journal before: {lost.why}"
    return NotChecked(what="Event", subject="node", reason=lost.reason, detail=why, how=_HOW)


def _from_journal(host: Host, refusal: Unreadable) -> Iterator[Record]:
    """What the journal says instead of the buffer."""
    for said in host.call("journal", deadline=_DEADLINE):
        if isinstance(said, NotChecked):
            reason = said.reason if said.reason is Reason.NO_ANSWER else refusal.reason
            detail = f"{refusal.why}; journal: {said.why}"
            yield NotChecked(what="Event", subject="node", reason=reason, path=KMSG, detail=detail, how=_HOW)
        else:
            yield said


def _boot_time(host: Host) -> float:
    """Seconds since 1970 at boot; 0 where that cannot be read, so that events count from boot."""
    try:
        found = re.search(r"^btime ([0-9]{1,11})$", host.read(STAT) or "", re.MULTILINE)
    except Unreadable:
        return 0.0
    return float(found[1]) if found else 0.0
