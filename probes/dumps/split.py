"""A file cut into the outputs of tools that it holds: a pasted issue, a log of commands, a report of many tools.

Each family says how a line looks with which an output of its tools begins (BEGIN, a regular expression). The output
goes on to the next such line of any family, or to a shell's prompt, a fence, a headline. Neighbours of one family are
one part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType

from .part import Part
from .shapes import loosened, shape

# Between outputs: fences, headlines of collections, and prompts with a command ("$ nvidia-smi", "root@node1:~# lspci").
# A "#" alone is root's prompt before the name of a tool only: outputs have comments.
_COMMAND = r"(?:sudo |\w+=\S+ )*[a-z/~.][\w./-]*(?:[ ].*)?"
_TOOLS = (
    r"(?:sudo |/usr/s?bin/)?(?:nvidia|lspci|lstopo|lscpu|lsblk|ls|ib|rdma|ethtool|ip|dmesg|journalctl|cat|grep|numactl"
    r"|nvme|df|free|ulimit|env|uname|dcgmi|rocm|amd|fi_info|show_gids|mpirun|srun|fio|systemctl)[\w-]*(?:[ ].*)?"
)
_WHO = r"(?:\([\w.-]+\)[ ]?)?(?:\[[^\]\n]{1,80}\]|[\w.-]+@[\w.-]+[^\n$#%]{0,80})"
_BETWEEN = (
    rf"^[ \t]*(?:```.*|~~~.*|={{8}}.*|-{{20,}}[ \t]*|\#{{2,}} .*"
    rf"|{_WHO}[$#%] {_COMMAND}|[$%] {_COMMAND}|\# {_TOOLS})$"
)
_SEPARATOR = re.compile(_BETWEEN)
_MOST_SHAPES, _LONGEST = 50_000, 2_000  # characters of a line whose shape is remembered
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)|\x00")


def means_nothing(part: Part) -> bool:
    """Whether it is lines between outputs alone, or without a word: the upper edge of a table."""
    return all(not any(map(str.isalnum, line)) or _SEPARATOR.match(line) for _, line in part.lines())


def clean(text: str) -> str:
    """Without colour codes, carriage returns and zero bytes. Lines stay lines."""
    return _CODES.sub("", text) if "\x1b" in text or "\r" in text or "\x00" in text else text


def split(file: str, text: str, at: float, families: Sequence[ModuleType]) -> Iterator[tuple[ModuleType | None, Part]]:
    """The parts in order, each with its family; None: in no form that is known. `text` is cleaned first."""
    plain = clean(text)
    known = {f"f{number}": family for number, family in enumerate(families)}
    begin = begun = 0
    last: ModuleType | None = None
    for start, number, group in _marks(plain, tuple(families)):
        family = known.get(group)
        if family is None or family is not last:
            if (piece := plain[begin:start]).strip():
                yield last, Part(file, begun + 1, piece, at)
            begin, begun, last = start, number, family
    if (piece := plain[begin:]).strip():
        yield last, Part(file, begun + 1, piece, at)


def _marks(text: str, families: tuple[ModuleType, ...]) -> Iterator[tuple[int, int, str]]:
    """Where a line begins an output or stands between outputs: its place, its number from 0, the group that matched.

    Line by line: a search would try every alternative at every letter.
    """
    exact, loose = _expressions(families)
    nothing = set[str]()
    start = number = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        form = shape(text[start : min(end, start + _LONGEST)])
        if form not in nothing:
            if found := exact.match(text, start):
                yield start, number, found.lastgroup or ""
            elif len(nothing) < _MOST_SHAPES and end - start < _LONGEST and not loose.match(form):
                nothing.add(form)
        start = end + 1
        number += 1


@cache
def _expressions(families: tuple[ModuleType, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """One for all families, and the one that tells which shapes of lines it cannot match."""
    begins = "|".join(f"(?P<f{number}>{family.BEGIN})" for number, family in enumerate(families))
    loose = "|".join(f"(?:{loosened(family.BEGIN)})" for family in families)
    return (
        re.compile(f"{begins}|(?P<between>{_BETWEEN})", re.MULTILINE),
        re.compile(f"{loose}|(?:{loosened(_BETWEEN)})", re.MULTILINE),
    )
