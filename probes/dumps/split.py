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

# Between outputs: fences, headlines of collections, and prompts with a command ("$ nvidia-smi", "root@node1:~# lspci").
# A "#" alone is root's prompt before the name of a tool only: outputs have comments.
_COMMAND = r"(?:sudo |\w+=\S+ )*[a-z/~.][\w./-]*(?:[ ].*)?"
_TOOLS = (
    r"(?:sudo |/usr/s?bin/)?(?:nvidia|lspci|lstopo|lscpu|lsblk|ls|ib|rdma|ethtool|ip|dmesg|journalctl|cat|grep|numactl"
    r"|nvme|df|free|ulimit|env|uname|dcgmi|rocm|amd|fi_info|show_gids|mpirun|srun|fio|systemctl)[\w-]*(?:[ ].*)?"
)
_WHO = r"(?:\([\w.-]+\)[ ]?)?(?:\[[^\]\n]{1,80}\]|[\w.-]+@[\w.-]+[^\n$#%]{0,80})"
_BETWEEN = (
    rf"^[ \t]*(?:```.*|~~~.*|={{8,}}.*|-{{20,}}[ \t]*|\#{{2,}} .*"
    rf"|{_WHO}[$#%] {_COMMAND}|[$%] {_COMMAND}|\# {_TOOLS})$"
)
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)|\x00")


def clean(text: str) -> str:
    """Without colour codes, carriage returns and zero bytes. Lines stay lines."""
    return _CODES.sub("", text) if "\x1b" in text or "\r" in text or "\x00" in text else text


def split(file: str, text: str, at: float, families: Sequence[ModuleType]) -> Iterator[tuple[ModuleType | None, Part]]:
    """The parts in order, each with its family; None: in no form that is known. `text` is cleaned first."""
    plain = clean(text)
    marks = [(match.start(), match.lastgroup or "") for match in _marks(tuple(families)).finditer(plain)]
    known = {f"f{number}": family for number, family in enumerate(families)}
    stretches: list[tuple[int, ModuleType | None]] = [(0, None)]
    for start, group in marks:
        family = known.get(group)
        if family is None or family is not stretches[-1][1]:
            stretches.append((start, family))
    line = 1
    for (start, family), (end, _) in zip(stretches, [*stretches[1:], (len(plain), None)], strict=True):
        piece = plain[start:end]
        if piece.strip():
            yield family, Part(file, line, piece, at)
        line += piece.count("\n")


@cache
def _marks(families: tuple[ModuleType, ...]) -> re.Pattern[str]:
    """One expression for all, so that a large file is looked through once."""
    begins = "|".join(f"(?P<f{number}>{family.BEGIN})" for number, family in enumerate(families))
    return re.compile(f"{begins}|(?P<between>{_BETWEEN})", re.MULTILINE)
