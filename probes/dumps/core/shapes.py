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
    open: int = 0  # further groups that end with this alternative


def loosened(expression: str) -> str:
    """The expression up to where it may leave the line, in which each digit may be any; without what is around.

    Of what is optional and leaves the line, either it begins or what follows: two alternatives.
    """
    written: list[str] = []
    groups = [_Group()]
    closed = _Group(hidden=True)  # what the token before has closed
    tokens = _TOKEN.findall(expression)
    for token, following in zip(tokens, (*tokens[1:], ""), strict=True):
        if token.startswith("("):
            groups.append(_Group(hidden=groups[-1].hidden or groups[-1].ended or token[-1] in "=!"))
        group = groups[-1]
        group.ended = token != "|" and (group.ended or _may_leave(token))
        group.cut = group.cut or group.ended
        if token in "|)":
            written.append(")" * group.open)
            group.open = 0
        of_closed = token[0] in "?*+{" and not closed.hidden
        if token == ")":
            closed = groups.pop()
            written += [] if closed.hidden else _closing(closed, groups[-1], following)
            continue
        if of_closed and closed.open:
            continue  # how often the group comes, of which its alternative stands already
        if not group.hidden and (not group.ended or of_closed):
            written.append(_loose(token))
        closed = _Group(hidden=True)
    return "".join(written) + ")" * groups[0].open


def _closing(closed: _Group, parent: _Group, following: str) -> list[str]:
    """What stands for the end of a group. One that is cut ends its parent's alternative, unless it is optional."""
    if not closed.cut:
        return [")"]
    parent.cut = True
    if following[:1] in ("?", "*") or following.startswith("{0,"):
        parent.open += 1
        closed.open = 1
        return ["|"]
    parent.ended = True
    return [")"]


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
