"""Whether a person says that a program wrote what a line quotes: "dmesg shows `GPU reset begin!` every 10 s".

Documentation, patches and source code quote messages too. So the sentence needs a word for a witness, and states it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expressions import ignoring_case
from .sentences import clause, is_prose, is_stated, sentences

_WITNESS = (
    r"(?<![\w-])(?:shows?|showed|shown|says?|said|reports?|reported|prints?|printed|logs?|logged|writes?|wrote|gives?"
    r"|gave|throws?|threw|has|have|had|gets?|got|getting|sees?|saw|seen|seeing|hits?|ends?|ended|dies|died|dead|fails?"
    r"|failed|found|full of|with|because of|then|every|rapporte|affiche|zeigt|meldet)(?![\w-])|->|\u2192"
)
_ABSENT = (  # the words of a sentence about a message that is not there, is no fault, or belongs to other people
    r"(?<![\w-])(?:not|nothing|never|gone|harmless|no longer|works?|worked|grep\w{0,4}|search(?:ed|es)?"
    r"|look(?:ed)? for|report back|map(?:s|ped)?|alarms?|alerts?|patch(?:es)?|runbook|commit|pull request|pattern"
    r"|regex\w{0,3})(?![\w-])"
    r"|n['\u2019]t\b"
)
_CODE = (
    r"\\n\"|\"\)|;[ \t]*$|[=\[({][ \t]{0,2}[\"']|^[ \t]*(?:Fixes|Subject|Link): |^[ \t]{0,8}#{1,6} "
    r"|^[+-](?! )"
)


def is_source(line: str) -> bool:
    """Whether a line is source code, a patch, or a headline of Markdown."""
    return bool(ignoring_case(_CODE).search(line))


def blinded(line: str, places: Sequence[tuple[int, int]]) -> str:
    """The line with an "x" for each character of these quotes: their words are not those of the sentence."""
    for start, end in places:
        line = f"{line[:start]}{'x' * (end - start)}{line[end:]}"
    return line


def is_witnessed(blind: str, start: int, end: int) -> bool:
    """Whether the sentence around a quote, which is blinded, states that a program wrote it."""
    if not is_prose(f"{blind[:start]}it{blind[end:]}"):
        return False
    for first, said in sentences(blind):
        if first <= start < first + len(said):
            place = start - first, end - first
            near = clause(said, *place)
            witnessed = ignoring_case(_WITNESS).search(near) or ignoring_case(_WITNESS).search(said[: place[0]])
            return bool(witnessed) and not ignoring_case(_ABSENT).search(said) and is_stated(said, place, place)
    return False
