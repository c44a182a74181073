"""Messages of drivers that people quote without what the driver writes before them: "`GPU reset end with ret = -62`".

In a sentence such a message counts if the sentence states that it was logged: not as a condition, and not as over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.catalog.log_messages import Entry, message, quoted
from ..parsing.sentences import is_prose, is_stated, sentences
from .messages import Found, Needles, present
from .said import subject_in

_LONGEST = 2000  # characters of a line
_MARKS = "`\"'"
_KINDS = {"rm": "gpu"}  # what a sentence calls the subject of a row


def find_quoted(text: str, catalog: Needles[Entry], known: Sequence[Found]) -> list[Found]:
    """The messages without their prefix, in lines in which no message is known."""
    taken = {text.rfind("\n", 0, one.start) + 1 for one in known}
    every = (found for entry in present(text, catalog) for found in _find(text, entry, taken))
    return sorted(every, key=lambda one: one.start)


def _find(text: str, entry: Entry, taken: set[int]) -> Iterator[Found]:
    place = text.find(entry.needle)
    short = quoted(entry.name) if place >= 0 else None
    while short and place >= 0:
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        end = end if end >= 0 else len(text)
        found = short.search(text, start, end) if start not in taken and end - start < _LONGEST else None
        if found and _is_stated(text[start:end], found.start() - start, found.end() - start):
            kind = message(entry.name).subject
            subject = subject_in(text[start:end], found.start() - start, found.end() - start, _KINDS.get(kind, kind))
            yield Found(found.start(), found.end(), entry.name, subject)
        place = text.find(entry.needle, end)


def _is_stated(line: str, start: int, end: int) -> bool:
    """Whether a line that is a sentence states the message from `start` to `end`. Lines that begin with it do."""
    begin, until = _span(line, start, end)
    blind = f"{line[:begin]}{'x' * (until - begin)}{line[until:]}"
    if not line[:start].strip(" \t>|*-") or not is_prose(blind):
        return True
    for first, said in sentences(blind):
        if first <= begin < first + len(said):
            place = begin - first, until - first
            return is_stated(said, place, place)
    return False


def _span(line: str, start: int, end: int) -> tuple[int, int]:
    """The whole quote around these places, or these places."""
    begin = max(line.rfind(mark, 0, start) for mark in _MARKS)
    until = line.find(line[begin], end) if begin >= 0 else -1
    return (begin + 1, until) if until >= 0 else (start, end)
