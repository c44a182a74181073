"""Lines of scripts that check a node: "check_ib_ports .... FAIL: mlx5_3 is down", "[FAIL] NVLink: 17 of 18 links".

The words for the result are in capitals, as scripts print them. Checks whose name and message say nothing about the
machine are left out: tests of software have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....models.facts.machine import Event
from ...parsing.expressions import ignoring_case
from ..core.part import Part
from ..lines.markup import cells_of
from .failed_checks import FailedCheck, event_of_check, kind_of_check, subject_of_check

_FAILED = r"(?-i:FAIL(?:ED|URE)?|NOT[ _]OK|NOK|UNHEALTHY|CRITICAL)"
_MARK = r"[✗✘❌]\ufe0f?"
_CHECK = r"(?P<check>[a-z][\w #()-]{2,60}?)"
_FORMS = (
    rf"[ \t*-]{{0,8}}{_CHECK}(?:[ \t]{{0,8}}(?:\.{{2,60}}|[:|=]|->?|-{{2,60}})|[ \t]{{2,40}})[ \t.]{{0,40}}"
    rf"\[?[ ]?(?:{_FAILED}\b|{_MARK})[ ]?\]?(?:[ \t]{{0,8}}[:|(-]?[ \t]{{0,8}}(?P<message>[^\n]{{3,200}}))?",
    rf"[ \t*-]{{0,8}}(?:\[[ ]?{_FAILED}[ ]?\]|{_FAILED}:|{_MARK})[ \t:]{{0,8}}(?!Failed to start){_CHECK}"
    r"(?:[ \t]{0,4}[:(-][ \t]{0,8}(?P<message>[^\n]{3,200}))?",
)
_NEEDLES = ("FAIL", "NOT OK", "NOT_OK", "NOK", "UNHEALTHY", "CRITICAL", "✗", "✘", "❌")
_LONGEST, _MOST = 300, 200  # characters of a line, and events


def read_check_lines(part: Part) -> Iterator[Event]:
    """An event for each failed check about the machine."""
    found: dict[str, Event] = {}
    for number, line in part.lines_with(_NEEDLES):
        state = _state(cells_of(line).rstrip()) if len(line) <= _LONGEST else None
        if state and kind_of_check(state) != "other" and len(found) < _MOST:
            event = event_of_check(state, subject_of_check(state), part.cite(number, line))
            found.setdefault(event.key, event)
    yield from found.values()


def _state(line: str) -> FailedCheck | None:
    for form in _FORMS:
        if one := ignoring_case(form).fullmatch(line):
            return FailedCheck(one["check"].strip(), " ".join((one["message"] or line).split())[:160])
    return None
