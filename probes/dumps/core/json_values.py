"""JSON documents within a part, and access to JSON values whose type can be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from ..lines.json_text import decoded, whole_characters
from .part import Part

_OPENS = re.compile(r"[\[{]")


class Document(Struct, frozen=True):
    """A JSON document: its value, its first line in the part (from 0), and its position in the text."""

    value: Any
    line: int
    begin: int
    end: int


def documents(part: Part, begins: re.Pattern[str] = _OPENS) -> Iterator[Document | NotChecked]:
    """The JSON documents whose first bracket is in a match of `begins`.

    Ends with a NotChecked at an incomplete document.
    """
    end, line, counted = 0, 0, 0
    text = whole_characters(part.text)
    while found := begins.search(part.text, end):
        opens = _OPENS.search(part.text, found.start())
        begin = opens.start() if opens else found.start()
        line += part.text.count("\n", counted, begin)
        counted = begin
        try:
            value, end = decoded(text, begin)
        except ValueError:
            why = "incomplete or invalid JSON"
            yield NotChecked(
                what="dump", subject=part.file, reason=Reason.INCOMPLETE, path=part.where(line), detail=why
            )
            return
        yield Document(value, line, begin, end)


def object_of(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []
