"""The shape of a line: the line with all its digits alike. Logs have few shapes, whatever their length.

An expression that is loosened matches the shape of the first line of every text that it matches itself. So what it does
not match once needs not be tried on any other line of that shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ALIKE = str.maketrans("123456789", "000000000")
_TOKEN = re.compile(
    r"\\x[0-9a-fA-F]{2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9,]*\}|\(\?<?[=!]|\(\?P?<?|\(|\)|[0-9]|[\s\S]"
)


def shape(lines: str) -> str:
    """The lines with a 0 for each digit."""
    return lines.translate(_ALIKE)


@dataclass(slots=True)
class _Group:
    """A group that is open: whether nothing of it is written, nothing more of this alternative, of which any."""

    hidden: bool = False
    ended: bool = False
    cut: bool = False


def loosened(expression: str) -> str:
    """The expression up to where it may leave the line, in which each digit may be any; without what is around."""
    written: list[str] = []
    groups = [_Group()]
    closed = _Group(hidden=True)  # what the token before has closed
    for token in _TOKEN.findall(expression):
        if token.startswith("("):
            groups.append(_Group(hidden=groups[-1].hidden or groups[-1].ended or token[-1] in "=!"))
        group = groups[-1]
        group.ended = token != "|" and (group.ended or _may_leave(token))
        group.cut = group.cut or group.ended
        counts_closed = token[0] in "?*+{" and not closed.hidden
        if not group.hidden and (not group.ended or token == ")" or counts_closed):
            written.append(_loose(token))
        closed = groups.pop() if token == ")" else _Group(hidden=True)
        groups[-1].ended = groups[-1].ended or (not closed.hidden and closed.cut)
    return "".join(written)


def _may_leave(token: str) -> bool:
    """Whether it matches the end of a line."""
    if not token.startswith("["):
        return token in (r"\s", r"\n", r"\W", r"\D")
    return (r"\n" in token or r"\s" in token) != token.startswith("[^")


def _loose(token: str) -> str:
    if token.isdecimal():
        return r"\d"
    if not token.startswith("[") or not re.search(r"[0-9]", re.sub(r"\\x[0-9a-fA-F]{2}", "", token)):
        return token
    return r"[^\n]" if token.startswith("[^") else rf"(?:{token}|\d)"
