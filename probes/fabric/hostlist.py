"""Lists of host names as Slurm writes them (slurm.conf(5), "node[01-03,7]")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

MOST = 100_000  # names of a list
_NAME = re.compile(r"(?:[^,\[\]\s]|\[[0-9,-]*\])+")
_PART = re.compile(r"\[([0-9,-]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def expand(text: str) -> list[str]:
    """The names of a list: "node01", "node02" of "node[01-02]". ValueError: it names too many, or a range is wrong."""
    found: list[str] = []
    for word in _NAME.findall(text):
        parts = [[*_numbers(part[1])] if part[2] is None else [part[2]] for part in _PART.finditer(word)]
        count = 1
        for several in parts:
            count *= len(several)
        if count + len(found) > MOST:
            raise ValueError(f"a list of more than {MOST:,} names")
        found += ["".join(one) for one in product(*parts)]
    return found


def _numbers(text: str) -> Iterator[str]:
    """The numbers of a range, with leading zeros as written."""
    for word in text.split(","):
        found = _RANGE.fullmatch(word)
        if found is None:
            raise ValueError(f"[{text}] is not a range of numbers")
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) > MOST:
            raise ValueError(f"a list of more than {MOST:,} names")
        yield from (f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
