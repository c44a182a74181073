"""Removes the remarks in brackets that people write behind a value: "Rate: 100 (should be 200)".

Tools write brackets behind values, too: "(downgraded)", "(4X EDR)". So this is a proposal: the caller keeps it only if
the readers read more from it. A remark that says that the fault is over stays, and so the value stays unread; the
readers of rates understand "(was 380 Gb/s)" themselves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...parsing.expressions import ignoring_case
from ...parsing.sentences import is_over

_BRACKETS = re.compile(r"(?<=[^\s(])[ \t]{1,8}(?P<remark>\((?!was \d)[^()\n]{2,100}\))(?=[ \t]*$)")
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
    """A text without remarks, whether one of them has a number, and the first one that may doubt its value: the number
    of its line (from 0) and its words.
    """

    text: str
    numbered: bool
    doubt: tuple[int, str] | None


def without_brackets(text: str) -> Bare | None:
    """The text without such remarks. None: it has none."""
    if ")\n" not in text and not text.endswith(")"):
        return None
    lines, removed = text.split("\n"), dict[int, str]()
    for number, line in enumerate(lines):
        found = _BRACKETS.search(line) if line.rstrip().endswith(")") else None
        if found and ignoring_case(_OF_PERSON).search(found["remark"]) and not is_over(found["remark"]):
            lines[number], removed[number] = line[: found.start()], found["remark"]
    doubts = ((number, words) for number, words in removed.items() if not _HARMLESS.fullmatch(words))
    numbered = any(re.search(r"\d", words) for words in removed.values())
    return Bare("\n".join(lines), numbered, next(doubts, None)) if removed else None
