"""NVLinks that a line calls down: "NVLink 7 of GPU 2 is down", "GPU 2: NVLinks 3, 5 down", "2 of 18 NVLinks down"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .words import Word

DOWN = ("down", "inactive")
_LINKS = r"(?:nv)?links?"
_NUMBER = r"[0-9]{1,2}"
_NAMED = re.compile(rf"{_LINKS}(?: link| number)? (?P<numbers>{_NUMBER}(?:(?: and)? {_NUMBER}){{0,35}})(?! of [0-9])")
_COUNTED = re.compile(rf"(?P<down>{_NUMBER})(?: (?:of|/|out of) (?P<all>{_NUMBER})) (?:nv)links")


def named(words: Sequence[Word]) -> tuple[int, ...]:
    """The numbers of the links that are down. Empty: the line names none, or says that some link is up."""
    found = _NAMED.search(_text(words)) if _all_down(words) else None
    return tuple(int(number) for number in re.findall("[0-9]+", found["numbers"])) if found else ()


def counted(words: Sequence[Word]) -> tuple[int, int] | None:
    """The number of links that are up, and of all links. None: the line does not count links that are down."""
    found = _COUNTED.search(_text(words)) if _all_down(words) else None
    if found is None or int(found["down"]) > int(found["all"]):
        return None
    return int(found["all"]) - int(found["down"]), int(found["all"])


def _all_down(words: Sequence[Word]) -> bool:
    states = [word.text for word in words if word.kind == "state"]
    return bool(states) and all(state in DOWN for state in states) and not any(w.text in ("not", "no") for w in words)


def _text(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words if word.kind != "gpu")
