"""The lines that no reader knows, and those of them that may name a fault: with them, a text is not "ok"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ...models.catalog.log_messages import MACROS
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..parsing.parsers import shown
from ..parsing.sentences import is_negated, is_record
from .core.part import Part, sources
from .host.log_events import unstated

# What people write of a machine. Not "Freezing user space processes" and "crash kernel", which a healthy one logs.
_SYMPTOM = r"\b(?:freezes|freezing|frozen?|hang(?:s|ing)|crash(?:es|ed|ing)|[Bb]lack screens?|[Rr]ebooted itself)\b"
_FAULT, _LONGEST_LINE = re.compile(f"{MACROS['fault']}|{_SYMPTOM}"), 400
_MOST_BEHIND = 40  # lines
_LONGEST_PROSE = 1 << 17  # characters: longer texts are logs
# A row of a tool: indented, of a table, a member of JSON, a comment, a count of zero, or a denial
_ROW = re.compile(
    r"[\s|{}\[\]\"#*,]|[^\n]{0,200}(?:[:|=}]\s*0(?![\w.])|less than|without error)|\W{0,4}[Nn]o\b|[^\n]{0,60}: No\b"
)
HOW = (
    "paste whole outputs with their command lines (nvidia-smi -q, lspci -vv, ibstat, dmesg ...), or make a capture on "
    "the machine: linkgauge capture FILE"
)
_MOST_NAMED = 5  # unknown line ranges named in a message


def unread_faults(part: Part, records: Iterable[Record]) -> Iterator[tuple[str, str]]:
    """The lines with a word for a fault behind the last line that a record of the part cites. Many lines are a text of
    another kind: the help of a tool.
    """
    cited = {source for one in records for source in sources(one)}
    lines = [number for number, _ in part.lines()]
    last = max((number for number in lines if part.where(number) in cited), default=None)
    if last is not None and lines[-1] - last <= _MOST_BEHIND:
        yield from (fault for number, fault in _faults(part) if number > last)


def unknown_text(name: str, parts: Sequence[Part], known: int) -> NotChecked:
    """The gap of these parts, or of the whole text. Beside what was read, a line with a word for a fault is not ok."""
    why, how = _unknown(parts, known), None if known else HOW
    named = next((fault for part in parts for _, fault in _faults(part)), None) if known else None
    if named:
        why, how = f"{why}; line {named[0]} may name a fault: {shown(named[1], 80)}", HOW
    reason = Reason.INCOMPLETE if named else Reason.UNREADABLE
    return NotChecked(what="dump", subject=name, reason=reason, detail=why, how=how)


def _faults(part: Part) -> Iterator[tuple[int, tuple[str, str]]]:
    """The numbers of lines with a word for a fault that they do not deny, or with a message of a fault that they do not
    state; each with its place and text.
    """
    named = unstated(part.text) if len(part.text) < _LONGEST_PROSE else set[int]()
    for number, line in part.lines():
        if number in named:
            yield number, (part.place(number), line)
            continue
        found = _FAULT.search(line) if len(line) < _LONGEST_LINE and not _ROW.match(line) else None
        if found and not is_record(line) and not is_negated(line, found.start(), found.end()):
            yield number, (part.place(number), line)


def _unknown(parts: Sequence[Part], known: int) -> str:
    if not known:
        return "not in a known format"
    ranges = [f"{part.place(0)}" if part.place(0) == part.last else f"{part.place(0)}-{part.last}" for part in parts]
    more = f" and {len(ranges) - _MOST_NAMED} more" if len(ranges) > _MOST_NAMED else ""
    return f"lines {', '.join(ranges[:_MOST_NAMED])}{more} are not in a known format"
