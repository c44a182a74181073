"""JSON of other tools: whole texts in a part, and values where one kind is expected and anything may stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from .part import Part

_OPENS = re.compile(r"[\[{]")


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON text: its value, the number of its first line in the part, from 0, and where it stands in the text."""

    value: Any
    line: int
    begin: int
    end: int


def documents(part: Part, begins: re.Pattern[str] = _OPENS) -> Iterator[Document | NotChecked]:
    """The JSON texts that begin with a bracket in a match of `begins`; where one is not whole, that, and no more."""
    decoder, end, line, counted = json.JSONDecoder(), 0, 0, 0
    while found := begins.search(part.text, end):
        opens = _OPENS.search(part.text, found.start())
        begin = opens.start() if opens else found.start()
        line += part.text.count("\n", counted, begin)
        counted = begin
        try:
            value, end = decoder.raw_decode(part.text, begin)
        except (ValueError, RecursionError):
            why = "no whole JSON text begins here: it was cut, or is none"
            yield NotChecked(
                what="dump", subject=part.file, reason=Reason.UNREADABLE, path=part.where(line), detail=why
            )
            return
        yield Document(value, line, begin, end)


def object_of(value: object) -> dict[str, Any]:
    """The value where it is an object; else one without members."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return value if isinstance(value, list) else []
