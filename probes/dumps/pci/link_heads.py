"""The function of a link whose address is in the line above: the output of scripts that print a headline per card.

lspci.py and sysfs_text.py know the lines of a function only below the headline of their own tool. Below any other one,
the fact has the place of its line as its key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ....models.facts.machine import Pci
from ....models.facts.pci_classes import AMD, MELLANOX, NVIDIA, kind_of
from ....models.facts.records import NotChecked, Record
from ..core.pci_words import class_of, identity
from .drivers import GPU_DRIVERS
from .lspci_excerpts import ADDRESS, names_others

_FARTHEST = 40  # lines between the headline and the first line about the link
# Words of a headline that say nothing more of the device
_LABEL = re.compile(
    r"(?<![a-z])(?:card|device|dev|gpus?|accelerator|nics?|hca|adapter|nvme|ssd|disk|drive|pcie?|bdf|bus(?:[ _-]?id)?"
    r"|address|addr|slot(?= ?[:=])|function|link|id|for|of|at|on|checking|probing)(?![a-z])|(?<![\w])\d{1,2}(?![\w])",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?P<before>[^\n]{0,120}?)(?<![\w.:])(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?![\w.])"
    r"(?P<rest>[^\n]{0,200})",
    re.IGNORECASE,
)
# Words with which a line is about another link than that of the address in it
_COMPARED = re.compile(
    r"(?<![\w-])(?:unlike|than|not|no|but|below|above|behind|under|from|instead|while|same)(?![\w-])", re.IGNORECASE
)
# A command for one function, and the prompt of another command
_COMMAND = re.compile(r"[^\n|;]{0,60}(?<![\w-])lspci(?:[ ]-[a-zA-Z]{1,8}){0,4}[ ]-s[ ]?")
_OPTIONS = re.compile(r"(?:[ ]-[a-zA-Z]{1,8}){0,4}[ ]*(?:\|[^\n]{0,120})?")
_PROMPT = re.compile(r"[\w.@:~/\[\] -]{0,60}[$#] [a-z/.]")
_HEADING = re.compile(r"#{1,6} [^\n]{1,100}$")  # of Markdown
_NOTHING = re.compile(r"[\W_]*")
_SLOT = re.compile(r"(?<![a-z])(?:in )?slot[ #:=]{0,3}\d{1,3}(?!\w)", re.IGNORECASE)
_NUMBERS = re.compile(
    r"[\[(]([0-9a-f]{4}):([0-9a-f]{4})[\])]|(?<![\w:.])(10de|1002|15b3|8086|14e4):([0-9a-f]{4})(?!\w)"
)
_CLASS = re.compile(r"[\W_]{0,8}(?P<kind>[A-Z3][\w /.()-]{2,60}?)(?: \[[0-9a-f]{4}\])?: (?P<what>[^\n]+)")
_TAIL = re.compile(r"(?: \[[0-9a-f]{4}:[0-9a-f]{4}\])?(?: \((?:rev|prog-if) [0-9a-f]{2}\b.*)?$")
# A word of a headline, and the PCI class and vendor of such devices
_WORDS: Mapping[str, tuple[int, int | None]] = {
    r"nvme|ssd": (0x010802, None),
    r"connectx|mellanox|infiniband": (0x020000, MELLANOX),
    r"nics?|hca|ethernet": (0x020000, None),
    r"geforce|tesla|quadro|rtx|gtx|nvidia": (0x030000, NVIDIA),
    r"radeon|instinct": (0x030000, AMD),
    r"gpus?|accelerator": (0x030000, None),
}


def with_heads(records: Sequence[Record], name: str, text: str) -> Sequence[Record]:
    """The records, with the address for each link that a headline names. `name` is that of the file."""
    places = [_place(record, name) for record in records]
    if not any(places):
        return records
    lines, named = text.split("\n"), dict[str, Pci]()
    for record, place, free in zip(records, places, _free(records, places), strict=True):
        if isinstance(record, Pci) and place and (head := _head(lines, place, free)):
            named[record.key] = _named(record, head, _heading(lines, place))
    taken = Counter(record.key for record in (*records, *named.values()) if isinstance(record, Pci))
    found = {key: one for key, one in named.items() if taken[one.key] == 1}
    return [_with_subject(record, found) for record in records]


def _place(record: Record, name: str) -> int:
    """The line of a fact whose key is its place in the file, from 1. 0: any other record."""
    file, _, digits = record.key.rpartition(":") if isinstance(record, Pci) else ("", "", "")
    return int(digits) if file == name and digits.isdecimal() and len(digits) < 9 else 0


def _free(records: Sequence[Record], places: Sequence[int]) -> Iterator[int]:
    """For each record the last line before it that is of another function. Records come in the order of their lines."""
    last = 0
    for record, place in zip(records, places, strict=True):
        yield last
        if place:
            cites = getattr(record, "cites", {}).values()
            last = max((_line(one.source) for one in cites), default=last)


def _line(source: str) -> int:
    digits = source.rpartition(":")[2]
    return int(digits) if digits.isdecimal() and len(digits) < 9 else 0


def _head(lines: Sequence[str], place: int, free: int) -> re.Match[str] | None:
    """The headline above a line: the nearest one with an address, if nothing else says what it is about."""
    for number in range(place - 2, max(free, place - 2 - _FARTHEST) - 1, -1):
        line = lines[number] if number < len(lines) else ""
        if ADDRESS.search(line[:400]):
            head = _HEAD.fullmatch(line.rstrip())
            return head if head and _is_headline(head) else None
        if names_others(line[:400]) or _PROMPT.match(line):
            return None
    return None


def _is_headline(head: re.Match[str]) -> bool:
    """Whether the words of a line are those of one device, not of prose about it."""
    if _COMMAND.fullmatch(head["before"]):
        return head["rest"].startswith("`") or bool(_OPTIONS.fullmatch(head["rest"]))  # a command in a sentence
    before, rest = _LABEL.sub("", _SLOT.sub("", head["before"])), head["rest"]
    if _NOTHING.fullmatch(before) and (_NOTHING.fullmatch(rest) or _class(rest)):
        return True
    words = f"{before} {_SLOT.sub('', _NUMBERS.sub('', rest))}"
    about_others = names_others(words) or _COMPARED.search(words)
    return bool(_NUMBERS.search(rest) or _word(words)) and not about_others and len(words) < 120


def _class(rest: str) -> re.Match[str] | None:
    """The class and the name behind an address, as lspci writes them."""
    found = _CLASS.fullmatch(rest)
    return found if found and class_of(found["kind"]) is not None else None


def _word(text: str) -> tuple[int, int | None] | None:
    found = (value for word, value in _WORDS.items() if re.search(rf"(?<![a-z])(?:{word})(?![a-z])", text, re.I))
    return next(found, None)


def _heading(lines: Sequence[str], place: int) -> str:
    """The heading of the section with this line, if it is about the device and not about the port above it."""
    section = (line for line in reversed(lines[max(place - 1 - _FARTHEST, 0) : place - 1]) if _HEADING.match(line))
    heading = next(section, "")
    return "" if names_others(heading) else heading


def _named(fact: Pci, head: re.Match[str], heading: str) -> Pci:
    """The fact with the address, and with what the headline says of the device. A bare command has no word for it."""
    address = head["address"].lower()
    fields: dict[str, Any] = {}
    if found := _class(head["rest"]):
        vendor, device, name = identity(_TAIL.sub("", found["what"]).strip())
        fields = {"pci_class": class_of(found["kind"]), "vendor": vendor, "device": device, "name": name}
    elif word := _word(head[0]) or _word(heading):
        fields = {"pci_class": word[0], "vendor": word[1]}
    if numbers := _NUMBERS.search(head["rest"]):
        first, last = (numbers[1] or numbers[3], numbers[2] or numbers[4])
        fields |= {"vendor": int(first, 16), "device": int(last, 16)}
    known = {name: value for name, value in fields.items() if value is not None and getattr(fact, name) is None}
    function = replace(fact, key=address if address.count(":") > 1 else f"0000:{address}", **known)
    foreign = function.vendor == NVIDIA and kind_of(function) == "gpu" and function.driver not in GPU_DRIVERS
    return replace(function, driver=None) if foreign else function


def _with_subject(record: Record, found: Mapping[str, Pci]) -> Record:
    """A record about a named function with its address."""
    if isinstance(record, Pci):
        return found.get(record.key, record)
    if isinstance(record, NotChecked) and record.subject in found:
        return replace(record, subject=found[record.subject].key)
    return record
