"""Messages of drivers that people quote without what the driver writes before them: "`GPU reset end with ret = -62`".

Such a message is a line of its own, perhaps behind its time, or a sentence says that it was logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...models.catalog.log_messages import Entry, message, quoted
from ..parsing.quotes import blinded, is_source, is_witnessed
from .messages import Found, Needles, present
from .said import subject_in

_LONGEST = 2000  # characters of a line
_OF_GPUS = ("nvidia", "amdgpu")  # files whose messages are about GPUs, also if they name none
_MARKS = "`\"'"
# What a log writes before its messages; marks of a list or a quote; or words and a colon: "Found in the log: "
_BEFORE = re.compile(
    r"[ \t>|*-]{0,12}(?:\[[ ]{0,8}[\d.]{3,20}\][ ]{0,2}|(?=[\w:.+-]*\d\d)[\w:.+-]{8,40}[ ](?:\S{1,60}[ ])?)?"
    r"(?:kernel:[ ]{0,2})?(?:GPU[ ]?\d{1,2}:?[ ])?"
    r"|[A-Za-z][\w ]{0,20} (?:in|from|of|by|the|is|are) [\w ]{0,40}:[ ]{1,2}"
)


def find_quoted(text: str, catalog: Needles[Entry], known: Sequence[Found], stated: bool = True) -> list[Found]:
    """The messages without their prefix, in lines in which no message is known.

    `stated`: those that the line states. Else those of sentences that do not say that the message was logged here.
    """
    taken = {text.rfind("\n", 0, one.start) + 1 for one in known}
    every = (found for entry in present(text, catalog) for found in _find(text, entry, taken, stated))
    return sorted(every, key=lambda one: one.start)


def _find(text: str, entry: Entry, taken: set[int], stated: bool) -> Iterator[Found]:
    place = text.find(entry.needle)
    short = quoted(entry.name) if place >= 0 else None
    while short and place >= 0:
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        end = end if end >= 0 else len(text)
        line = text[start:end]
        found = short.search(line) if start not in taken and len(line) < _LONGEST and not is_source(line) else None
        if found and _is_stated(line, *found.span()) == stated:
            subject = subject_in(line, *found.span(), _kind(entry))
            yield Found(start + found.start(), start + found.end(), entry.name, subject)
        place = text.find(entry.needle, end)


def _kind(entry: Entry) -> str:
    """What kind of device a sentence names as the subject of this message."""
    kind = message(entry.name).subject
    return "gpu" if entry.file in _OF_GPUS and kind in ("rm", "node") else kind


def _is_stated(line: str, start: int, end: int) -> bool:
    """Whether a line is the message from `start` to `end`, or a sentence that says that it was logged."""
    if _BEFORE.fullmatch(line[:start]):
        return "|" not in line[end:]
    begin, until = _span(line, start, end)
    return is_witnessed(blinded(line, [(begin, until)]), begin, until)


def _span(line: str, start: int, end: int) -> tuple[int, int]:
    """The whole quote around these places, or these places."""
    begin = max(line.rfind(mark, 0, start) for mark in _MARKS)
    until = line.find(line[begin], end) if begin >= 0 else -1
    return (begin + 1, until) if until >= 0 else (start, end)
