"""Messages of the catalog (models/catalog/messages) in a text, at any place of a line.

One pass searches the text for the needles of all messages. Only the patterns of the needles that it finds are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...models.catalog.log_messages import Entry, message, pattern, subject_of
from ...models.facts.machine import Event
from .forms import Form

Needled = TypeVar("Needled", Entry, Form)
KIND = "message"
_BEFORE, _AFTER = 300, 600  # characters around a needle that can belong to its message: a line may hold a whole log
_LONG = 1 << 16  # characters; in a longer text, lines that differ in digits only are searched once
_DIGITS = str.maketrans("123456789", "000000000")


@dataclass(frozen=True, slots=True)
class Found:
    """A message in a text: its position, and the name and the subject of its row."""

    start: int
    end: int
    name: str
    subject: str

    def event(self, text: str) -> Event:
        """The event of the message. `text` is the line, or the part of a long line that holds it."""
        return Event(key="", kind=KIND, subject=self.subject, name=self.name, text=text, count=1)


def find_messages(text: str, entries: Sequence[Entry]) -> list[Found]:
    """The messages in a text of many lines, in their order."""
    some = present(text, entries)
    return sorted((found for entry in some for found in _find(text, entry)), key=lambda one: one.start)


def present(text: str, entries: Iterable[Needled]) -> list[Needled]:
    """The entries or forms whose needles the text contains."""
    if len(text) <= _LONG:
        return [entry for entry in entries if entry.needle in text]
    shapes = "\n".join(set(text.translate(_DIGITS).split("\n")))
    return [entry for entry in entries if entry.needle.translate(_DIGITS) in shapes]


def _find(text: str, entry: Entry) -> Iterator[Found]:
    place, done = text.find(entry.needle), 0
    while place >= 0:
        begin = max(text.rfind("\n", 0, place) + 1, place - _BEFORE, done)
        end = text.find("\n", place)
        end = min(end if end >= 0 else len(text), place + _AFTER)
        found = pattern(entry.name).search(text, begin, end)
        if found:
            yield Found(found.start(), found.end(), entry.name, subject_of(entry.name, found))
            done = found.end()
        place = text.find(entry.needle, max(done, place + len(entry.needle)))


def without_lone_ends(events: Iterable[Event]) -> Iterator[Event]:
    """The events without messages that end others which the log does not have: most are lines of a healthy machine."""
    every = list(events)
    names = {event.name for event in every if event.kind == KIND}
    for event in every:
        if event.kind != KIND or (row := message(event.name or "")).code or names & {*row.clears}:
            yield event


def message_event(text: str, entries: Sequence[Entry]) -> Event | None:
    """The event of the first message in a line."""
    found = find_messages(text, entries)
    return found[0].event(text) if found else None
