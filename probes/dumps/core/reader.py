"""A dump reader: turns the output of one family of tools into records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ....models.facts.records import Record
from .part import Part


# identity comparison: the registry has one object per reader, and hashing is fast
class Reader(Struct, frozen=True, eq=False):
    """The pattern of the first line of an output, and the function that reads the output."""

    name: str  # shown in messages
    begin: str  # a regular expression for the line with which an output begins
    read: Callable[[Part], Iterator[Record]]
    lines: bool = False  # each line has a meaning of its own
    any_line: str = ""  # a regular expression for lines within an output; tried for texts that no reader recognises
    # The lines (first one, and the one behind the last one) that it reads in a part that no other reader knows
    find: Callable[[Part], Iterable[tuple[int, int]]] | None = None
