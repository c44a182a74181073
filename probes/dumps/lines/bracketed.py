"""Removes the remarks in brackets that people write behind a value: "Rate: 100 (should be 200)".

Tools write brackets behind values, too: "(downgraded)", "(4X EDR)". So this is a proposal: the caller keeps it only if
the readers read more from it. A remark that says that the fault is over stays, and so the value stays unread. So do
"(was 380)" and "(should be 400 Gb/s)", which the readers of rates and of notes understand.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from ...parsing.expressions import ignoring_case
from ...parsing.sentences import is_over

_RATE = r"[^()\n]{0,90}?[0-9] ?[KMGT]i?(?:[Bb]|bit)(?:/s|ps)"
_BRACKETS = re.compile(rf"(?<=[^\s(])[ \t]{{1,8}}(?P<remark>\((?!was \d|{_RATE})[^()\n]{{2,100}}\))(?=[ \t]*$)")
_OF_PERSON = (  # what the value should be, that it is wrong, or where it holds
    r"[!?]|(?<![\w-])(?:should|must|expect\w{0,4}|instead|suppos\w{1,4}|was|were|wrong|missing|bad|too|needs?|why"
    r"|degraded|down|lost|dead|slow|broken|failed)(?![\w-])"
    r"|^(?!.*\d).*(?<![\w-])(?:only|here|normal\w{0,2}|others?|rest|before|after|on|since|default|same|healthy)(?![\w-])"
)
_HARMLESS = re.compile(  # it says where the value holds, and nothing else
    r"\((?:\b(?:only|here|normal|on|of|in|the|this|these|that|all|both|our|a|is|as|and|not|shown|other|others|rest|same"
    r"|default|docker|healthy|node|nodes|host|hosts|machine|server|gpu|gpus|port|ports|card|cards|matrix|excerpt)\b"
    r"[ ,.]{0,2}){1,12}\)",
    re.IGNORECASE,
)


class Bare(NamedTuple):
    """A text without remarks, and the first remark that may doubt its value: the number of its line (from 0) and its
    words.
    """

    text: str
    doubt: tuple[int, str] | None


def without_brackets(text: str, whole: Collection[int] = ()) -> Bare | None:
    """The text without such remarks. None: it has none. The lines with the numbers `whole` (from 0) stay: they are
    messages of programs, and such a message can end with brackets.
    """
    if ")\n" not in text and not text.endswith(")"):
        return None
    lines = text.split("\n")
    found = {number: one for number, line in enumerate(lines) if line.rstrip()[-1:] == ")" and (one := _remark(line))}
    for number in found.keys() & set(whole):
        del found[number]
    for number, one in found.items():
        lines[number] = lines[number][: one.start()]
    doubts = ((number, one["remark"]) for number, one in found.items() if not _HARMLESS.fullmatch(one["remark"]))
    return Bare("\n".join(lines), next(doubts, None)) if found else None


def _remark(line: str) -> re.Match[str] | None:
    found = _BRACKETS.search(line)
    of_person = found and ignoring_case(_OF_PERSON).search(found["remark"]) and not is_over(found["remark"])
    return found if of_person else None
