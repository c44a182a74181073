"""The shape of a line: the line with all its digits alike. Logs have few shapes, whatever their length.

An expression that is loosened matches the shape of every line that it matches itself. So what it does not match once
needs not be tried on any other line of that shape.
"""

from __future__ import annotations

import re

_ALIKE = str.maketrans("123456789", "000000000")
_TOKEN = re.compile(
    r"\\x[0-9a-fA-F]{2}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[0-9,]*\}|\(\?<?[=!]|\(\?P?<?|\(|\)|[0-9]|[\s\S]"
)


def shape(line: str) -> str:
    """The line with a 0 for each digit."""
    return line.translate(_ALIKE)


def loosened(expression: str) -> str:
    """The same expression, in which each digit may be any, and nothing is said of what is around."""
    written: list[str] = []
    depth, hidden = 0, 0  # how many groups are open; in which of them what is around is looked at
    for token in _TOKEN.findall(expression):
        if token.startswith("("):
            depth += 1
            hidden = hidden or (depth if token[-1] in "=!" else 0)
        if not hidden:
            written.append(_loose(token))
        if token == ")":
            hidden = 0 if hidden == depth else hidden
            depth -= 1
    return "".join(written)


def _loose(token: str) -> str:
    if token.isdecimal():
        return r"\d"
    if not token.startswith("[") or not re.search(r"[0-9]", re.sub(r"\\x[0-9a-fA-F]{2}", "", token)):
        return token
    return r"[\s\S]" if token.startswith("[^") else rf"(?:{token}|\d)"
