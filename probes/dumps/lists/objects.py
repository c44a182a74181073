"""JSON objects that name a device, whatever program wrote them: {"gpu": 3, "pcie": {"width": 8}}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.facts.records import NotChecked
from ..core.json_pieces import pieces
from ..core.json_values import documents
from ..core.part import Part
from .item import MOST_CELLS, Cell, Item, Listed, is_device, item_of

_BEGIN = re.compile(r"^[ \t]{0,80}[\[{](?=[\s]{0,200}[\"\[{])", re.MULTILINE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DEEPEST = 12
_LONGEST = 200  # characters of a value, and of the shown members


def objects(part: Part) -> Iterator[Listed]:
    """The items of each JSON document. Of a damaged one, those of its whole objects."""
    lines = part.text.count("\n") + 1
    for document in documents(part, _BEGIN):
        if isinstance(document, NotChecked):
            begin = _BEGIN.search(part.text)
            found = list(pieces(part, begin.start() if begin else 0))
            items = tuple(item for value, line in found for item in _walk(value, "", line, 0))
            if items:
                yield Listed(found[0][1], lines, items)
        elif items := tuple(_walk(document.value, "", document.line, 0)):
            end = document.line + part.text.count("\n", document.begin, document.end) + 1
            yield Listed(document.line, end, items)


def _walk(value: Any, name: str, line: int, depth: int) -> Iterator[Item]:
    """The items in a value. `name` is that of the member with the value."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for one in value:
            yield from _walk(one, name, line, depth + 1)
    if not isinstance(value, dict):
        return
    pairs = list(_flat(value, "", 0))[:MOST_CELLS]
    text = "; ".join(f"{key}: {one}" for key, one in pairs)[:_LONGEST]
    cells = [Cell(key, one, line, text) for key, one in pairs]
    if is_device(name):
        item: Item | None = Item(name, tuple(cells))
    else:
        item = item_of(cells, "gpu" in name.lower())
    if item and cells:
        yield item
    for key, one in value.items():
        if isinstance(one, list) or not item or is_device(key):
            yield from _walk(one, key, line, depth + 1)


def _flat(value: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    """The members with a plain value, also those of inner objects: "pcie link width"."""
    for key, one in value.items():
        name = f"{prefix}{_CAMEL.sub(' ', str(key))}".replace("_", " ")
        if isinstance(one, dict) and depth < _DEEPEST and not is_device(str(key)):
            yield from _flat(one, f"{name} ", depth + 1)
        elif isinstance(one, bool):
            yield name, "yes" if one else "no"
        elif isinstance(one, str | int | float):
            yield name, str(one)[:_LONGEST]
