"""Words around the name of a fault which say that it did not happen: "fallen off the bus: no", "without Xid 79"."""

from __future__ import annotations

import re

_NEAR = 60  # characters before and behind the name
_BEFORE = re.compile(
    r"(?:\b(?:no|never|without(?: an?y?)?|zero|none of|(?:has|have) not|hasn't|haven't)[ ]{1,3}"
    r"(?:(?:new|more|other|further|recent|single|such|an?|any|been)[ ])?|^[ \t]{0,8}0[ ]{1,3})$",
    re.IGNORECASE,
)
_STATE = r"(?:no|none|false|never|n/a|not (?:found|seen|detected|present|logged))"
_BEHIND = re.compile(  # "the GPU is lost, not detected by nvidia-smi" says the fault again
    rf"[ \t]{{0,8}}[:=?|,][:=?|, \t]{{0,8}}(?:{_STATE}|0)[ .|)]{{0,4}}$"
    r"|[ ]{1,2}(?:was|were|has been|have been)[ ](?:not|never)[ ](?:found|seen|detected|observed|logged)\b"
    r"|[ ]{1,2}(?:did not happen|never (?:happened|occurred))\b"
    r"|[ ,(:=-]{1,3}(?:(?:was|were|is|are|has|have|had|been|now|already|since)[ ]){0,3}"
    r"(?:cleared|resolved|fixed|repaired)\b",
    re.IGNORECASE,
)
_WITHIN = re.compile(rf"[:=?|][ \t]{{0,8}}({_STATE})[ .|)]{{0,4}}$", re.IGNORECASE)  # in what was matched


def is_negated(line: str, start: int, end: int, pattern: str = "") -> bool:
    """Whether a line says that the fault that it names from `start` to `end` did not happen, or is over.

    A word that the pattern itself asks for is a part of the fault: "met: FALSE".
    """
    before, behind = line[max(0, start - _NEAR) : start], line[end : end + _NEAR]
    if _BEFORE.search(before) and (start <= _NEAR or not before.lstrip().startswith("0 ")):
        return True
    if behind.strip():
        return bool(_BEHIND.match(behind))
    word = _WITHIN.search(line[max(start, end - _NEAR) : end])
    return word is not None and re.search(rf"(?<!\w){word[1]}(?!\w)", pattern, re.IGNORECASE) is None
