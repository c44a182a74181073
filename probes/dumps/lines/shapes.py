"""The shape of a line: the line with each digit replaced by 0. Logs have few shapes, whatever their length.

`shape_expression` converts an expression to one for shapes. If that does not match a shape, the original expression
matches no line of this shape.
"""

from __future__ import annotations

import re

from msgspec import Struct

_ALIKE = str.maketrans("123456789", "000000000")
_TOKEN = re.compile(
    r"\\x[0-9a-fA-F]{2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9,]*\}|\(\?<?[=!]|\(\?P?<?|\(|\)|[0-9]|[\s\S]"
)


def shape(lines: str) -> str:
    """The lines with a 0 for each digit."""
    return lines.translate(_ALIKE)


class _Group(Struct):
    """An open group.

    `hidden`: nothing of it is written. `ended`: the rest of this alternative is not written. `cut`: at least one of its
    alternatives has ended early.
    """

    hidden: bool = False
    ended: bool = False
    cut: bool = False
    open: int = 0  # further groups to close at the end of this alternative


def shape_expression(expression: str) -> str:
    """An expression that matches the shape of the first line of every text that `expression` matches.

    It ends at the point at which `expression` can match a line break. Each digit matches any digit. Lookarounds are
    removed. An optional group that can match a line break becomes two alternatives: the beginning of the group, or the
    text after it.
    """
    written: list[str] = []
    groups = [_Group()]
    closed = _Group(hidden=True)  # the group that the token before has closed
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
            continue  # the quantifier of a group whose alternative is already written
        if not group.hidden and (not group.ended or of_closed):
            written.append(_loose(token))
        closed = _Group(hidden=True)
    return "".join(written) + ")" * groups[0].open


def _closing(closed: _Group, parent: _Group, following: str) -> list[str]:
    """The text that replaces the end of a group.

    A cut group ends its parent's alternative, unless the group is optional.
    """
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
    """Whether the token can match a line break."""
    if not token.startswith("["):
        return token in (r"\s", r"\n", r"\W", r"\D")
    return (r"\n" in token or r"\s" in token) != token.startswith("[^")


def _loose(token: str) -> str:
    if token.isdecimal():
        return r"\d"
    if not token.startswith("[") or not re.search(r"[0-9]", re.sub(r"\\x[0-9a-fA-F]{2}", "", token)):
        return token
    return r"[^\n]" if token.startswith("[^") else rf"(?:{token}|\d)"
