"""Read the clear objects of a JSON text with missing or damaged lines.

A name that comes again in one object, and a name in another column than the other names of its object, are of another
object, whose beginning is missing. An object ends at a gap ("..."), and everything open ends at a bracket deeper than
any tool nests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from ..lines.json_text import loads
from .part import Part

_TOKEN = re.compile(
    r"(?P<name>\"(?:[^\"\\\n]|\\.){0,200}\")[ \t]*:"
    r"|(?P<value>\"(?:[^\"\\\n]|\\.){0,4000}\"|-?[0-9][0-9.eE+-]{0,40}(?=[\s,}\]])"
    r"|\b(?:true|false|null)\b)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<gap>^[ \t]*(?:\[?\.{3}|<snip|-{4})[^\n]*$)",
    re.MULTILINE,
)
_DEEPEST = 50  # levels
_WIDEST = 200  # columns of blanks before a name


class _Open(Struct):
    """An open object or list."""

    value: dict[str, Any] | list[Any]
    line: int
    column: int = -1  # of its names, if they are at the beginning of their lines
    name: str = ""  # the name whose value comes next


class _Pieces(Struct):
    """The state of a run through the tokens. `found` has the outermost objects with their first lines."""

    open: list[_Open] = field(default_factory=list)
    found: list[tuple[dict[str, Any], int]] = field(default_factory=list)

    def begin(self, value: dict[str, Any] | list[Any], line: int) -> None:
        if not any(isinstance(one.value, dict) for one in self.open) and isinstance(value, dict):
            self.found.append((value, line))
        self.put(value)
        self.open.append(_Open(value, line))

    def put(self, value: Any) -> None:
        """A value of the innermost object or list."""
        if not self.open:
            return
        above = self.open[-1]
        if isinstance(above.value, list):
            above.value.append(value)
        elif above.name:
            above.value[above.name], above.name = value, ""

    def name(self, name: str, line: int, column: int) -> None:
        """A name: of the innermost object, of one around it, or of a new one."""
        while (
            self.open
            and (isinstance(self.open[-1].value, list) or (0 <= column < self.open[-1].column))
            and any(isinstance(one.value, dict) and one.column <= column for one in self.open)
        ):
            self.leave()
        top = self.open[-1] if self.open else None
        other = top is not None and top.column >= 0 <= column and top.column != column
        if top is None or isinstance(top.value, list) or name in top.value or other:
            if top is not None and isinstance(top.value, dict):
                self.open.pop()
            self.begin({}, line)
        self.open[-1].name = name
        if self.open[-1].column < 0:
            self.open[-1].column = column

    def close(self, bracket: str) -> None:
        kind = dict if bracket == "}" else list
        if any(isinstance(one.value, kind) for one in self.open):
            while not isinstance(self.open[-1].value, kind):
                self.leave()
            self.open.pop()

    def leave(self) -> None:
        """Leave what has no end. A list of words or numbers can lack some, so it is none."""
        left = self.open.pop().value
        above = self.open[-1].value if self.open else None
        if isinstance(left, list) and isinstance(above, dict) and not any(isinstance(one, dict | list) for one in left):
            for name in [name for name, value in above.items() if value is left]:
                del above[name]


def beginning_is_missing(part: Part) -> NotChecked:
    """A text that begins within a document."""
    why = "the beginning of the JSON document is missing"
    return NotChecked(what="dump", subject=part.file, reason=Reason.INCOMPLETE, path=part.where(0), detail=why)


def pieces(part: Part, start: int) -> Iterator[tuple[dict[str, Any], int]]:
    """The outermost objects in the text from position `start`, with the number of their first line in the part."""
    state, number, counted, begin = _Pieces(), 0, 0, 0
    for token in _TOKEN.finditer(part.text, start):
        number += part.text.count("\n", counted, token.start())
        begin = max(begin, part.text.rfind("\n", counted, token.start()) + 1)
        counted = token.start()
        if token["gap"] or len(state.open) > _DEEPEST:
            state.open.clear()
        elif token["open"]:
            state.begin({} if token["open"] == "{" else [], number)
        elif token["close"]:
            state.close(token["close"])
        elif token["name"]:
            column = counted - begin
            if column > _WIDEST or part.text[begin:counted].strip():
                column = -1
            state.name(_text(token["name"]), number, column)
        else:
            state.put(_text(token["value"]))
    yield from state.found


def _text(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None
