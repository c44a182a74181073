"""Faults that sentences of people state (models/catalog/said_messages.py), in texts of any kind.

A line counts by its sentences: each one that states a fault of now gives one message for each code.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ...models.catalog.log_messages import SAID, Entry, Said, entries, named
from ...models.catalog.said_messages import candidates, row
from ..parsing.expressions import ignoring_case
from ..parsing.sentences import clause, device, is_sentence, is_stated, sentences
from .messages import Found, Needles, needles, present

_LONGEST, _AROUND = 3000, 800  # characters of a line, and those around a needle in a longer one
# Unlike str.lower(), this keeps the length of a text. Digits of a needle stand for any digits.
_FOLDED = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789", "abcdefghijklmnopqrstuvwxyz000000000")
_OTHERS = (
    r"\bthe (?:(?:two|three|four|five|six|seven|\d{1,2}) )?(?:others?|rest)\b"  # than the one that the sentence names
)
# Where a sentence names no device of the kind of the row, it may name one of these kinds.
_ALSO = {"gpu": ("pci", "rdma"), "pci": ("gpu", "rdma", "net"), "rdma": ("net",), "net": ("rdma",), "nvme": ("disk",)}


@cache
def _needles() -> Needles[Entry]:
    return needles(entries(*SAID))


def find_said(text: str) -> list[Found]:
    """The faults that a text states, in their order."""
    folded = text.translate(_FOLDED)
    found: dict[tuple[int, str, str], Found] = {}
    several: dict[str, list[str]] = {}
    lines: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for entry in present(folded, _needles()):
        several.setdefault(entry.name, []).append(entry.needle.translate(_FOLDED))
    for name, texts in several.items():
        said = row(name)
        for place in sorted({place for needle in texts for place in _places(folded, needle)}):
            if place not in lines:
                lines[place] = _sentences(text, *place)
            for start, sentence in lines[place]:
                if one := _of_sentence(sentence, start, said):
                    found.setdefault((one.start, said.name, one.subject), one)
    return sorted(found.values(), key=lambda one: one.start)


def _sentences(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """The sentences of a line, each with its place. Rows of tools have none."""
    return [(start + first, one) for first, one in sentences(text[start:end]) if is_sentence(one)]


def _places(folded: str, needle: str) -> Iterator[tuple[int, int]]:
    """Where the lines with a needle begin and end. Of a very long line, the part around it."""
    place = folded.find(needle)
    while place >= 0:
        start, end = folded.rfind("\n", 0, place) + 1, folded.find("\n", place)
        end = end if end >= 0 else len(folded)
        if end - start > _LONGEST:
            start, end = max(start, place - _AROUND), min(end, place + _AROUND)
        yield start, end
        place = folded.find(needle, end)


def _of_sentence(sentence: str, start: int, said: Said) -> Found | None:
    """The fault of a row, if the sentence states it."""
    stated = next((one for one in candidates(said, sentence) if is_stated(sentence, one.first, one.last)), None)
    if stated is None:
        return None
    subject = subject_in(sentence, stated.start, stated.end, said.subject)
    return Found(start + stated.start, start + stated.end, said.name, subject, sentence=sentence)


def subject_in(sentence: str, start: int, end: int, kind: str) -> str:
    """The device that the clause around these places names, or the only one in the sentence. "node": none."""
    own = clause(sentence, start, end)
    for text in (own,) if ignoring_case(_OTHERS).search(own) else (own, sentence):
        for one in (kind, *_ALSO.get(kind, ())):
            if name := device(text, one):
                return named(one, name)
    return "node"
