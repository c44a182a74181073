"""Messages of the catalog (models/catalog/messages) in a text, at any place of a line.

The needles of all messages are searched before the patterns. Only the patterns of the needles in the text are compiled.
Lines whose shape (their text with a 0 for each digit) contains no needle are searched once: texts repeat their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Generic, TypeVar

from msgspec import Struct, field

from ...models.catalog.log_messages import Entry, entries, message, pattern, subject_of
from ...models.facts.machine import Event
from ..parsing.sentences import is_negated
from .forms import Form

Needled = TypeVar("Needled", Entry, Form)
KIND = "message"
DOWN, UP, READY = "link down", "link up", "link ready"  # kinds of events of ports
_NEAR = 1000  # needles within so many characters are searched at once: a line may repeat one thousands of times
_BEFORE, _AFTER = 300, 600  # characters around a needle that can belong to its message: a line may hold a whole log
# rsyslog writes equal lines once. The count is that of the lines after the first one.
_REPEATED = re.compile(r"message repeated ([0-9]{1,9}) times: ?\[")
_DIGITS = str.maketrans("123456789", "000000000")
_MOST_SHAPES, _LONGEST = 1 << 14, 500  # shapes that are kept, and characters of each


class Found(Struct, frozen=True):
    """A message in a text: its position, and the name and the subject of its row."""

    start: int
    end: int
    name: str
    subject: str
    code: int | None = None  # the number of the Xid or SXid that the message names: others are other events
    sentence: str | None = None  # of a person

    def event(self, text: str) -> Event:
        """The event of the message. `text` is the line, or the part of a long line that holds it."""
        count = times_of(text)
        text = self.sentence or text
        return Event(key="", kind=KIND, code=self.code, subject=self.subject, name=self.name, text=text, count=count)


def times_of(text: str) -> int:
    """How often a line of a log was written."""
    found = _REPEATED.search(text) if "message repeated " in text else None
    return int(found[1]) if found else 1


class Needles(Struct, Generic[Needled], frozen=True, eq=False):
    """Entries or forms, the shapes of their needles, and shapes of lines that contain none of these."""

    entries: Sequence[Needled]
    shapes: Sequence[str]
    absent: set[str] = field(default_factory=set[str])


def needles(entries: Sequence[Needled]) -> Needles[Needled]:
    """The needles of these entries or forms."""
    return Needles(entries, [entry.needle.translate(_DIGITS) for entry in entries])


@cache
def catalog(*files: str) -> Needles[Entry]:
    """The needles of these files of models/catalog/messages, without `.toml`."""
    return needles(entries(*files))


def find_messages(text: str, needles: Needles[Entry]) -> list[Found]:
    """The messages in a text of many lines, in their order."""
    return _found(text, present(text, needles))


def _found(text: str, entries: Iterable[Entry]) -> list[Found]:
    every = (found for entry in entries for found in _find(text, entry))
    return sorted(every, key=lambda one: one.start)


def present(text: str, needles: Needles[Needled]) -> list[Needled]:
    """The entries or forms whose needles the text contains. Digits of a needle stand for any digits."""
    lines = set(text.translate(_DIGITS).split("\n")) - needles.absent
    if not lines:
        return []
    shapes = "\n".join(lines)
    found = [number for number, needle in enumerate(needles.shapes) if needle in shapes]
    if len(lines) + len(needles.absent) > _MOST_SHAPES:
        needles.absent.clear()
    if len(lines) <= _MOST_SHAPES:
        some = [needles.shapes[number] for number in found]
        short = (line for line in lines if len(line) <= _LONGEST)
        needles.absent.update(line for line in short if not any(needle in line for needle in some))
    return [needles.entries[number] for number in found]


def _find(text: str, entry: Entry) -> Iterator[Found]:
    """The messages of one row."""
    place, done = text.find(entry.needle), 0
    while place >= 0:
        begin = max(text.rfind("\n", 0, place) + 1, place - _BEFORE, done)
        end = text.find("\n", place)
        end = end if end >= 0 else len(text)
        # the last of the needles that are near: one search covers all of them
        last = text.rfind(entry.needle, place, max(place + len(entry.needle), min(end, place + _NEAR)))
        found = pattern(entry.name).search(text, begin, min(end, last + _AFTER))
        if found:
            if not _is_negated(text[begin:end], found, begin):
                subject = subject_of(entry.name, found)
                yield Found(found.start(), found.end(), entry.name, subject, _numbered(found))
            done, last = found.end(), place
        place = text.find(entry.needle, max(done, last + len(entry.needle)))


def _is_negated(line: str, found: re.Match[str], begin: int) -> bool:
    return is_negated(line, found.start() - begin, found.end() - begin, found.re.pattern)


def _numbered(found: re.Match[str]) -> int | None:
    groups = found.groupdict()
    return next((int(digits) for name in ("xid", "sxid") if (digits := groups.get(name) or "").isdecimal()), None)


def without_lone_ends(events: Iterable[Event]) -> Iterator[Event]:
    """The events without those that end others which the log does not have: most are lines of a healthy machine."""
    every = list(events)
    names = {event.name for event in every if event.kind == KIND}
    downs = {event.name for event in every if event.kind == DOWN}
    for event in every:
        if event.kind in (UP, READY):
            if event.name in downs:
                yield event
        elif event.kind != KIND or (row := message(event.name or "")).code or names & {*row.clears}:
            yield event


def message_event(text: str, entries: Sequence[Entry]) -> Event | None:
    """The event of the first message in a line."""
    found = _found(text, entries)
    return found[0].event(text) if found else None
