"""An excerpt: the files that a transformation makes of the output of a tool, and what is still in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Literal, TypeAlias

from msgspec import Struct

# whole: all information is present. part: some lines are missing. damage: some characters or lines are wrong.
Kind: TypeAlias = Literal["whole", "part", "damage"]
File: TypeAlias = str | bytes


class Sample(Struct, frozen=True):
    """One output of a tool. `others` are further outputs of the same reader."""

    reader: str
    name: str
    text: str
    others: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        return self.text.rstrip("\n").split("\n")

    @property
    def damaged(self) -> bool:
        """Whether the sample is itself a piece or a damaged output."""
        return self.name.startswith(("excerpts: ", "damage: "))

    @property
    def structured(self) -> bool:
        """Whether it is JSON or XML, in which a comment or a missing line breaks the syntax."""
        return self.text.lstrip()[:1] in ("{", "[", "<") and self.text.lstrip()[1:2] not in "0123456789"


class Excerpt(Struct, frozen=True):
    """Files that belong to one report.

    `kept` are the numbers of the lines of the sample (from 0) that are present; None: all. `changed` are damaged lines.
    `digits`: a digit is wrong. `other` is the text of another machine that is in the files too.
    """

    files: tuple[File, ...]
    kept: frozenset[int] | None = None
    changed: tuple[str, ...] = ()
    digits: bool = False
    other: str = ""


Make: TypeAlias = Callable[[Sample, Random], Iterable[Excerpt]]
Change: TypeAlias = Callable[[Sequence[str]], Iterable[str]]


class Transformation(Struct, frozen=True):
    """A way in which people or programs change an output. It yields no excerpt of a sample that it does not fit."""

    name: str
    kind: Kind
    make: Make


def whole(name: str, change: Change, structured: bool = True) -> Transformation:
    """A transformation of the lines that loses nothing. `structured`: it fits JSON and XML too."""

    def make(sample: Sample, chance: Random) -> Iterator[Excerpt]:
        if structured or not sample.structured:
            text = "\n".join(change(sample.lines)) + "\n"
            if text.rstrip("\n") != sample.text.rstrip("\n"):
                yield Excerpt((text,))

    return Transformation(name, "whole", make)
