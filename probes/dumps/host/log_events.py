"""Events of log lines in dumps: lines of the forms of kernel_log/forms.py, and messages of the catalog at any place.

A line is cited as it is written. Its time is the time in front of the message, in any format of log_times.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ....models.catalog import NOT_ENOUGH_EVIDENCE
from ....models.catalog.log_messages import KERNEL, PROGRAMS, UNEXPLAINED, message
from ....models.catalog.said_messages import row
from ....models.facts.machine import Event
from ....models.facts.records import Evidence
from ...kernel_log.forms import FORMS
from ...kernel_log.messages import (
    DOWN,
    KIND,
    READY,
    UP,
    Found,
    catalog,
    find_messages,
    message_event,
    needles,
    present,
)
from ...kernel_log.patterns import LONGEST, event_of, group
from ...kernel_log.quoted import find_quoted
from ...kernel_log.said import find_said
from ...parsing.sentences import is_definition, is_logged, is_prose, is_record, is_sentence, is_stated, sentences
from ..core.part import Part
from ..lines.placeholders import can_have, lines_to_fill, unfilled
from .log_times import head, time_before

_FORMS = needles(FORMS)
BOOTED = "Linux version "
_YEAR = 366 * 86400.0  # period of the clock without a year
_EDGE, _MOST = 40, 1 << 16  # lines at each end in which the reader searches for a time, and the characters of each end
_IN_ORDER = (KIND, DOWN, UP, READY, "nvme")  # a later event ends an earlier one
_PROSE = 1 << 17  # characters: in longer texts, which are logs, nobody writes about faults
_AHEAD = 200  # characters before a needle in a very long line
_CONDITION = re.compile(r"[ \t-]{0,40}(?:message|reason): [^\n]{0,400}(?:\n[^\n]{0,200}){0,2}\n[ \t]{0,40}status: \S")


class LogLine(Struct, frozen=True):
    """A line with its time and its event. `text` is the message."""

    number: int  # in its part, from 0
    whole: str
    clock: str
    at: float | None
    text: str
    event: Event | None = None


def read_events(part: Part, of_tool: bool = False) -> Iterator[Event]:
    """The events in a text of any kind: one per group of equal lines. `of_tool`: the text is the output of a tool."""
    lines = with_placeholders(part, [*_formed(part), *messages(part, of_tool)])
    yield from log_events(part, lines, time_ends(part.text) if lines else {})


def with_placeholders(part: Part, lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """The lines in their order, with those in which a person replaced names."""
    filled = {line.number: line for line in _filled(part)}
    others = [line for line in lines if line.number not in filled]
    return sorted((*others, *filled.values()), key=lambda line: line.number)


def _filled(part: Part) -> Iterator[LogLine]:
    for number, whole, text in lines_to_fill(part.lines()) if can_have(part.text) else ():
        clock, at, rest = head(text)
        event = event_of(rest) or message_event(rest, present(rest, catalog(*KERNEL, *PROGRAMS)))
        if event:
            yield LogLine(number, whole, clock, at, rest, unfilled(event, whole))


def _formed(part: Part) -> Iterator[LogLine]:
    """The lines of the forms. Of a very long line, such as JSON, the parts that hold them."""
    found = [form.needle for form in present(part.text, _FORMS)]
    for number, whole in part.lines_with(found) if found else ():
        for piece in _pieces(whole, found):
            clock, at, text = head(piece)
            if event := event_of(text):
                yield LogLine(number, piece, clock, at, text, event)


def _pieces(whole: str, needles: Sequence[str]) -> Iterator[str]:
    if len(whole) <= 2 * LONGEST:
        yield whole
        return
    for needle in needles:
        place = whole.find(needle)
        while place >= 0:
            yield whole[max(0, place - _AHEAD) : place + LONGEST - _AHEAD]
            place = whole.find(needle, place + LONGEST)


def messages(part: Part, of_tool: bool = False) -> Iterator[LogLine]:
    """The lines with messages of the catalog. Lines of the forms are left out."""
    text = part.text
    found = find_messages(text, catalog(*KERNEL, *PROGRAMS))
    found += find_quoted(text, catalog(*KERNEL), found)
    found = [one for one in found if not is_definition(_line(text, one)) and _counts(text, one)]
    explained = {_start(text, one) for one in found if message(one.name).code != NOT_ENOUGH_EVIDENCE}
    said = find_said(text) if len(text) < _PROSE else []
    found += [one for one in said if _start(text, one) not in explained and not is_output(text, one, of_tool)]
    explained = {_start(text, one) for one in found}
    others = {_start(text, one): one for one in find_messages(text, catalog(*UNEXPLAINED))}
    found += [one for start, one in others.items() if start not in explained]
    number = before = 0
    for one in sorted(found, key=lambda one: one.start):
        start = _start(text, one)
        number, before = number + text.count("\n", before, start), start
        line = _message(number, _line(text, one), start, one)
        if event_of(line.text) is None or (one.sentence and is_prose(line.whole)):
            yield line


def _counts(text: str, found: Found) -> bool:
    """Whether the line of a message is of a program, or a sentence that states the message."""
    line = _line(text, found)
    by_program = is_logged(line) or is_record(line) or not (is_prose(line) or is_sentence(line))
    if by_program or not message(found.name).stated:
        return True
    start = found.start - _start(text, found)
    place, said = [(place, said) for place, said in sentences(line) if place <= start][-1]
    own = start - place, found.end - found.start + start - place
    return is_stated(said, own, own)


def unstated(text: str) -> set[int]:
    """The lines (from 0) of sentences with a message that they do not state, and do not explain either."""
    found = find_messages(text, catalog(*KERNEL, *PROGRAMS))
    named = [
        *find_quoted(text, catalog(*KERNEL), found, stated=False),
        *(one for one in found if not _counts(text, one)),
    ]
    return {text.count("\n", 0, one.start) for one in named if not is_definition(_line(text, one))}


def is_output(text: str, found: Found, of_tool: bool) -> bool:
    """Whether the line of a sentence is of a program: a record of JSON, the message of a node's condition
    (gpu_tools/condition_lists.py), a line of a log, or a row of a tool.
    """
    line = _line(text, found)
    short = not of_tool and row(found.name).short
    of_condition = _CONDITION.match(text, _start(text, found))
    return bool(of_condition) or is_record(line) or is_logged(line) or not (short or is_prose(line))


def _line(text: str, found: Found) -> str:
    end = text.find("\n", found.end)
    return text[_start(text, found) : end if end >= 0 else len(text)]


def _start(text: str, found: Found) -> int:
    """Where the line of a message begins."""
    return text.rfind("\n", 0, found.start) + 1


def _message(number: int, whole: str, start: int, found: Found) -> LogLine:
    clock, at, text = head(whole[: 4 * LONGEST])
    if at is None:
        clock, at = time_before(whole[: found.start - start])
    if found.end - start > LONGEST:
        text = whole[max(0, found.start - start - _AHEAD) :][:LONGEST]
    return LogLine(number, whole, clock, at, text, found.event(text[:LONGEST]))


def log_line(number: int, whole: str) -> LogLine:
    """A line of a kernel log, with the event of its form."""
    clock, at, text = head(whole)
    return LogLine(number, whole, clock, at, text, event_of(text))


def time_ends(text: str) -> Mapping[str, tuple[float, float]]:
    """The first and the last time of each clock in the log."""
    edges = text if len(text) <= 2 * _MOST else f"{text[:_MOST]}\n{text[-_MOST:]}"
    lines = [line for line in edges.split("\n") if line]
    ends: dict[str, tuple[float, float]] = {}
    for line in lines if len(lines) <= 2 * _EDGE else (*lines[:_EDGE], *lines[-_EDGE:]):
        clock, at, _ = head(line)
        if at is not None:
            ends[clock] = (ends[clock][0] if clock in ends else at, at)
    return ends


def log_events(part: Part, lines: Sequence[LogLine], ends: Mapping[str, tuple[float, float]]) -> Iterator[Event]:
    """One event per group of equal lines. Times of different clocks are not comparable."""
    clocks: dict[str, list[LogLine]] = defaultdict(list)
    for line in lines:
        clocks[line.clock].append(line)
    for clock, found in clocks.items():
        yield from _events(part, found, ends.get(clock))


def _events(part: Part, lines: list[LogLine], ends: tuple[float, float] | None) -> Iterator[Event]:
    """The events of the lines of one clock. Without times, their order and distance are unknown."""
    clock = lines[0].clock
    if clock == "boot":
        lines = _last_boot(lines)
    if ends is None and (found := [line.at for line in lines if line.at is not None]):
        ends = (found[0], found[-1])
    near = ends[1] if ends else 0.0
    timed = [(_moment(clock, line.at or 0.0, near), line) for line in lines]
    shown_times = [near] if clock == "boot" else [_moment(clock, end, near) for end in ends or ()]
    until = max((*shown_times, *(at for at, _ in timed)), default=0.0)
    origin = 0.0 if clock in ("boot", "zoned") else min((at for at, _ in timed), default=0.0)
    ordered = sorted(((at, line) for at, line in timed if line.event), key=lambda pair: pair[0])
    latest = {line.event.text: line for _, line in ordered if line.event}
    for event in group(((at, line.event) for at, line in timed if line.event), part.file):
        line = latest[event.text]
        place = part.first + line.number if event.kind in _IN_ORDER else None
        cited = replace(event, cites={"text": _cite(part, line, event)}, place=place)
        if ends is None:
            yield replace(cited, at=None, first=None, recent=None, bursts=None)
        else:
            at, first = (event.at or 0.0) - origin, (event.first or 0.0) - origin
            yield replace(cited, at=at, first=first, until=until - origin)


def _cite(part: Part, line: LogLine, event: Event) -> Evidence:
    """The line, or the part of a very long line that holds the message."""
    return part.cite(line.number, line.whole if len(line.whole) <= LONGEST else event.text or line.whole)


def _moment(clock: str, at: float, near: float) -> float:
    """For the clock without a year: the time in the year that brings it nearest to the end of the log."""
    return near + (at - near + _YEAR / 2) % _YEAR - _YEAR / 2 if clock == "yearless" else at


def _last_boot(lines: list[LogLine]) -> list[LogLine]:
    """The lines since the last boot. The clock restarts at each boot."""
    starts = [place for place, line in enumerate(lines) if line.text.startswith(BOOTED)]
    return lines[starts[-1] :] if starts else lines
