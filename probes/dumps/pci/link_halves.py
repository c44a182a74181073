"""Capability and state of one link in different places of a text: in two code blocks, or in two sentences.

lspci.py reads each output alone. If a person quotes the two lines apart, a fact has only the capability or the state.
They are of one link if they come in turns, and if no word between them is about another device or the other end of the
link. The two ends have one state, and each end has its own capability.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ....models.facts.machine import Pci
from ....models.facts.records import NotChecked, Record
from .lspci_excerpts import ADDRESS, names_others

_FIELDS = ("width", "speed", "downgraded", "max_width", "max_speed", "pci_class")
_FARTHEST, _BEFORE = 40, 3  # lines between the two, and lines before the first one that say whose it is


class _Half(NamedTuple):
    """A fact with the capability or the state of a link only: its place among the records, and its line."""

    place: int
    line: int
    fact: Pci


def with_halves(records: Sequence[Record], text: str) -> Sequence[Record]:
    """The records, with one fact for each link whose capability and state are quoted apart."""
    halves = _halves(records)
    pairs = list(zip(halves[::2], halves[1::2], strict=False))
    if not pairs or len(halves) % 2 or not _take_turns(pairs):
        return records
    lines = text.split("\n")
    joined = {first.place: (first, last) for first, last in pairs if _of_one_link(first, last, lines)}
    gone = {last.place for _, last in joined.values()}
    named = {first.fact.key for first, _ in joined.values()} | {last.fact.key for _, last in joined.values()}
    return [
        _joined(*joined[place]) if place in joined else record
        for place, record in enumerate(records)
        if place not in gone and not (isinstance(record, NotChecked) and _is_of_state(record, named))
    ]


def _halves(records: Sequence[Record]) -> list[_Half]:
    """All facts about links, if each is a half. If some link is whole, the text shows further devices."""
    found: list[_Half] = []
    for place, fact in enumerate(records):
        known = (fact.width is not None, fact.max_width is not None) if isinstance(fact, Pci) else (False, False)
        if isinstance(fact, Pci) and any(known):
            line = _line_of(fact)
            if line is None or all(known):
                return []
            found.append(_Half(place, line, fact))
    return found


def _line_of(fact: Pci) -> int | None:
    cite = fact.cites.get("width" if fact.width is not None else "max_width")
    digits = cite.source.rpartition(":")[2].partition(".")[0] if cite else ""
    return int(digits) if digits.isdecimal() else None


def _take_turns(pairs: Sequence[tuple[_Half, _Half]]) -> bool:
    """Whether each capability has its state, always in the same order, and at most one of the two has an address."""
    order = {(first.fact.width is None, last.fact.width is None) for first, last in pairs}
    return len(order) == 1 and len(set(*order)) == 2 and all(_nameless(last.fact) for _, last in pairs)


def _nameless(fact: Pci) -> bool:
    return not ADDRESS.fullmatch(fact.key)


def _of_one_link(first: _Half, last: _Half, lines: Sequence[str]) -> bool:
    """Whether no words between the two lines are about another device, and the numbers fit."""
    capable, state = (first.fact, last.fact) if first.fact.width is None else (last.fact, first.fact)
    fits = _at_most(state.width, capable.max_width) and _at_most(state.speed, capable.max_speed)
    around = "\n".join(lines[max(first.line - 1 - _BEFORE, 0) : last.line])
    near = last.line - first.line <= _FARTHEST
    return fits and near and not names_others(around, first.fact.key) and not _is_called_whole(state, capable)


def _at_most(value: float | None, most: float | None) -> bool:
    return value is None or most is None or value <= most


def _is_called_whole(state: Pci, capable: Pci) -> bool:
    """Whether lspci calls a width "ok" that is below that of the capability: then this is of another device."""
    cite = state.cites.get("width")
    return bool(cite and re.search(r"Width x\d+ \(ok\)", cite.text)) and state.width != capable.max_width


def _joined(first: _Half, last: _Half) -> Pci:
    values: Mapping[str, object] = {
        name: value for name in _FIELDS if (value := getattr(last.fact, name)) is not None and name in last.fact.cites
    }
    return replace(first.fact, **values, cites={**first.fact.cites, **last.fact.cites})


def _is_of_state(record: NotChecked, keys: set[str]) -> bool:
    """Whether the record says that a state is missing that was found."""
    return record.what == "Pci.width" and record.subject in keys
