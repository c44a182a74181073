"""A reader: what turns the output of one family of tools into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ....models.facts.records import Record
from .part import Part


@dataclass(frozen=True, slots=True, eq=False)  # each reader is one object of the registry, and quick to hash
class Reader:
    """How the first line of an output looks, and the function that reads the output."""

    name: str  # as messages show it
    begin: str  # a regular expression for the line with which an output begins
    read: Callable[[Part], Iterator[Record]]
    lines: bool = False  # each line of an output has a meaning without the lines around it
