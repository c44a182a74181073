"""JSON documents within a part, and access to JSON values whose type can be wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
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


def member(value: object, path: str) -> Any:
    """The value at a path of keys: "end.sum_sent.bits_per_second". None: there is none."""
    for key in path.split("."):
        value = object_of(value).get(key)
    return value


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [object_of(one) for one in list_of(value)]


def number(value: object, most: float) -> float | None:
    """The value if it is a number from 0 to below `most`. Python's JSON accepts NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < most else None


def each_document(
    part: Part, begins: re.Pattern[str], read: Callable[[Part, Any, str], Iterator[Record]]
) -> Iterator[Record]:
    """What `read` gives for the value and the place of each document, and the gap of an incomplete one."""
    for one in documents(part, begins):
        yield from (one,) if isinstance(one, NotChecked) else read(part, one.value, part.where(one.line))
