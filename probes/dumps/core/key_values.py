"""Lines with a name and a value, in the layout of any tool: "name: value", "name = value", "name | value", columns,
JSON members. A reader describes the names that it knows; the engine finds them with or without the lines around them.

A name is compared without case, separators and the marks of Markdown. The shape of a value is part of the description:
a value of another shape is a damaged line or the line of another tool, and it is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....models.facts.records import Evidence, Fact
from .fields import FactCollector
from .part import Part

# The value ends before a note ("  # persistent", "  <-- here"). Dots fill the line of perfquery and of some ls tools.
# Blanks before brackets can be a part of the name: "low alarm    (Chan 1) : Off".
_LINE = re.compile(
    r"^[\s>|*•\"'`{,+-]*(?P<name>[A-Za-z][^:=|\t\n]{0,78}?)[\s*`\"']*"
    r"(?:[:=|]+[\s.]*|\t+|[ ]{2,}(?!\([^()\n]{1,24}\)\s*[:=]))"
    r"[\s*`\"']*(?P<value>[^|\n]{0,200}?)[\s|*`\"',;]*(?:\s(?:\#|//|<-|←)[^\n]*)?$"
)
_MEMBER = re.compile(r"\"([\w .-]{1,60})\"\s*:\s*\"?([^\",{}\[\]]{1,100})\"?")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_RUN = re.compile(r"([ *`\"'|.,;>+{-])\1{2,}|\t{2,}")  # two of a kind mean what more of them mean
_LONGEST = 400  # characters of a line


class Entry(Struct, frozen=True):
    """A name and a value. `name` is plain: "rx crc errors phy"."""

    name: str
    value: str
    where: Evidence


class Key(Struct, frozen=True):
    """A field of a fact that a name stands for. `shape` is the form of its values."""

    kind: type[Fact]
    field: str
    shape: re.Pattern[str]
    parse: Callable[[str], Any]


Keys = Mapping[str, tuple[Key, ...]]


def plain(name: str) -> str:
    """The name in lower case, with single blanks instead of all other characters."""
    return _SEPARATORS.sub(" ", name.lower()).strip()


def key(names: str, kind: type[Fact], field: str, shape: str, parse: Callable[[str], Any]) -> dict[str, Key]:
    """A field with its names, separated by "|"."""
    one = Key(kind, field, re.compile(shape), parse)
    return {plain(name): one for name in names.split("|")}


def together(*groups: Mapping[str, Key]) -> Keys:
    """The keys by name. A name can have several meanings, which differ in the shape of the value."""
    found: dict[str, tuple[Key, ...]] = {}
    for group in groups:
        for name, one in group.items():
            found[name] = (*found.get(name, ()), one)
    return found


def entry(line: str) -> tuple[str, str] | None:
    """The plain name and the value of a line. None: the line has another form."""
    # Long runs would take the expression minutes: its parts share them in many ways.
    found = _LINE.match(_RUN.sub(_two, line)) if len(line) <= _LONGEST else None
    return (plain(found["name"]), found["value"].strip()) if found else None


def _two(run: re.Match[str]) -> str:
    return run[1] * 2 if run[1] else "\t"


def entries(part: Part) -> Iterator[Entry]:
    """The entries of all lines, and of the members of JSON objects that are in one line."""
    for number, line in part.lines():
        yield from entries_of(part, number, line)


def entries_of(part: Part, number: int, line: str) -> Iterator[Entry]:
    """The entries of one line."""
    if line.count('":') > 1 or line.count('" :') > 1:
        cite = part.cite(number, line)
        yield from (Entry(plain(name), value.strip(), cite) for name, value in _MEMBER.findall(line))
    elif found := entry(line):
        yield Entry(*found, part.cite(number, line))


def meaning(keys: Keys, name: str, value: str) -> Key | None:
    """The key with this name whose values have the shape of this one."""
    return next((one for one in keys.get(name, ()) if one.shape.fullmatch(value)), None)


def collect(found: FactCollector, keys: Keys, one: Entry, subjects: Mapping[type[Fact], str]) -> bool:
    """Add the field that the entry gives to the fact with the key in `subjects`. False: the entry is not known."""
    known = meaning(keys, one.name, one.value)
    if known is None or known.kind not in subjects:
        return False
    found.take(known.kind, subjects[known.kind], one.where, known.field, one.value, known.parse)
    return True


def number(text: str) -> int:
    """The integer at the beginning of "12,345", "12 345" (French), "100%", "0x01" or "43 C"."""
    if hexadecimal := re.match(r"0x[0-9a-fA-F]{1,16}", text):
        return int(hexadecimal[0], 16)
    digits = re.match(r"[0-9]{1,20}(?:[,.'_  ][0-9]{3}(?![0-9]))*", text)
    if digits is None:
        raise ValueError(f"{text[:40]!a} is not a number")
    return int(re.sub("[^0-9]", "", digits[0]))


def begins(names: Sequence[str], value: str) -> str:
    """An expression for a line with one of these names and a value of this form, for a reader's BEGIN."""
    some = "|".join(names)
    return rf"[ \t>|*•`{{,\"-]{{0,20}}(?:{some})[ \t*`\"]{{0,60}}(?:[:=|][:. \t*`\"]{{0,60}}|[ \t]{{2,60}})(?:{value})"
