"""Words that are one character away from the name of a state: "ACT1VE", "Link?p", "PASSD".

A reader that knows the word "ACTIVE" sees nothing in "ACT1VE", and a text without a state looks like one without a
fault. So such a word is a gap, in whatever place and tool it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from string import ascii_letters

_STATES = (
    *("ACTIVE", "Active", "PORT_ACTIVE", "LINK_UP", "LinkUp", "ONLINE", "CONNECTED", "PASSED", "READY", "HEALTHY"),
    *(
        "Enabled",
        "Disabled",
        "Completed",
        "Success",
        "Healthy",
        "inactive",
        "Inactive",
        "Connected",
        "DEGRADED",
        "FAULTED",
    ),
)
_MARKS = "?!#*0123456789\ufffd"  # what stands for a letter that was lost
# Words that are no damage though one letter away
_OTHERS = (
    *("enable", "enables", "enabler", "disable", "disables", "complete", "completes", "completer", "connecter"),
    *("connector", "connects", "reactive", "reads", "read", "readm", "beady", "heady", "parsed", "passes", "passwd"),
    *("linkup", "health", "inline"),
)
_WORD = re.compile(rf"(?<![\w-])[A-Za-z{re.escape(_MARKS)}_]{{4,12}}(?![\w.-])")
_MOST = 1 << 20  # characters of a text that is searched: longer ones are logs
_FEW = 3  # words that are named


@cache
def _damaged() -> frozenset[str]:
    """Each state with one character lost, replaced or inserted. Marks at the ends are footnotes: "Enabled*"."""
    found: set[str] = set()
    for state in _STATES:
        for at in range(len(state)):
            before, behind = state[:at], state[at + 1 :]
            found |= {before + behind, *(before + letter + behind for letter in (*ascii_letters, *_MARKS))}
            if at:
                found |= {before + letter + state[at:] for letter in (*ascii_letters, *_MARKS)}
    others = {word.lower() for word in (*_STATES, *_OTHERS)}
    return frozenset(word for word in found if word.lower() not in others)


def damaged_words(text: str) -> Iterator[tuple[int, str]]:
    """The first damaged words: their line numbers, from 0, and the words."""
    if len(text) > _MOST:
        return
    words = _damaged()
    places = (found for found in _WORD.finditer(text) if found[0] in words)
    for found, _ in zip(places, range(_FEW), strict=False):
        yield text.count("\n", 0, found.start()), found[0]
