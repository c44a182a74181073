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
_DOUBTS = (  # what the value should be, what it was, or that it is wrong
    r"[!?]|(?<![\w-])(?:should|must|expect\w{0,4}|instead|suppos\w{1,4}|was|were|wrong|missing|bad|too|needs?|why"
    r"|degraded|down|lost|dead|slow|broken|failed)(?![\w-])"
)
_NEUTRAL = (  # words of a remark without numbers
    r"^(?!.*\d).*(?<![\w-])(?:only|here|normal\w{0,2}|others?|rest|before|after|on|since|default|same|healthy)(?![\w-])"
)


class Bare(NamedTuple):
    """A text without remarks, whether one of them has a number, and the first one that doubts its value: the number of
    its line (from 0) and its words.
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
        if found and ignoring_case(f"{_DOUBTS}|{_NEUTRAL}").search(found["remark"]) and not is_over(found["remark"]):
            lines[number], removed[number] = line[: found.start()], found["remark"]
    doubts = ((number, words) for number, words in removed.items() if ignoring_case(_DOUBTS).search(words))
    numbered = any(re.search(r"\d", words) for words in removed.values())
    return Bare("\n".join(lines), numbered, next(doubts, None)) if removed else None
