"""The wrong facts of an excerpt: those that the whole output does not have, unless a person would read them too.

Not wrong is a fact
- of a device without a name, if the whole output has it of a named one,
- of a damaged line: a wrong digit, letter or name is copied, and what counts or adds up such lines differs too,
- of a part: of a sum, of a list, of a rate whose size, kind or end is on a missing line,
- of an undamaged line that the whole output leaves unused because another line counts, and that line is missing: the
  sender's rate if the receiver's is missing, an earlier state if the last one is; or because two lines of a sample
  that is itself damaged contradict each other,
- of two machines in one file, if each part of it is of one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from bench.accuracy.excerpts.excerpt import Excerpt, Kind, Sample
from bench.accuracy.excerpts.reading import BESIDE, Atom, Reading
from bench.accuracy.excerpts.unavoidable import is_generic, is_part, is_text, lacks, misnamed, transcribed, without_name

_FAULTS = ("Event", "NcclFailure")  # the same line can be one or the other


class Both(Struct, frozen=True, dict=True):
    """A sample and its excerpt, and what the readers get from each of them. `other`: from the spliced machine."""

    sample: Sample
    excerpt: Excerpt
    kind: Kind
    base: Reading
    found: Reading
    other: Reading | None

    @cached_property
    def allowed(self) -> frozenset[Atom]:
        return self.base.atoms | (self.other.atoms if self.other else frozenset())

    @cached_property
    def keys(self) -> set[tuple[str, str]]:
        return {(atom.kind, atom.key) for atom in self.allowed}

    @cached_property
    def unnamed(self) -> set[Atom]:
        return {without_name(atom) for atom in self.allowed}

    @cached_property
    def values(self) -> set[Atom]:
        return {_value(atom) for atom in self.allowed}

    @cached_property
    def written(self) -> list[str]:
        (text,) = self.excerpt.files if len(self.excerpt.files) == 1 else ("",)
        return text.split("\n") if isinstance(text, str) else []

    @cached_property
    def rows(self) -> dict[str, set[int]]:
        """The numbers of the lines of the sample by their text."""
        found: dict[str, set[int]] = {}
        for row, line in enumerate(self.sample.lines):
            found.setdefault(line, set()).add(row)
        return found

    def lines(self, atom: Atom) -> list[str]:
        """The lines that the fact cites; if it cites none, those of the other fields of the record."""
        cited = self.found.lines[atom] or {
            row for one, rows in self.found.lines.items() if one[:2] == atom[:2] for row in rows
        }
        return [self.written[row] for row in cited if row < len(self.written)]


def wrong(both: Both) -> Iterator[Atom]:
    """The wrong facts of an excerpt."""
    for atom in both.found.atoms - both.allowed:
        fine = _is_unnamed(atom, both)
        if both.kind != "whole":
            fine = fine or _is_of_a_part(atom, both) or _is_of_damage(atom, both) or _is_unused(atom, both)
        if not fine:
            yield atom


def _is_unnamed(atom: Atom, both: Both) -> bool:
    if not atom.field:
        return (atom.kind, atom.key) in both.keys or is_generic(atom.key)
    mixed = both.other is not None
    if (mixed or both.sample.damaged or is_generic(atom.key)) and without_name(atom) in both.unnamed:
        return True
    return mixed and any((one.kind, *one[2:]) == (atom.kind, *atom[2:]) for one in both.allowed)


def _is_of_a_part(atom: Atom, both: Both) -> bool:
    return atom.field == BESIDE or is_part(atom, both.base) or lacks(atom, both.allowed)


def _is_of_damage(atom: Atom, both: Both) -> bool:
    excerpt = both.excerpt
    if is_text(atom, both.allowed, excerpt) or any(transcribed(atom, line) for line in excerpt.changed):
        return True
    if misnamed(atom.value, both.sample, excerpt):
        return True
    if _value(atom) in both.values and misnamed(atom.key, both.sample, excerpt):
        return True
    if atom.kind in _FAULTS and any(line in excerpt.changed for line in both.lines(atom)):
        return any(one.kind in _FAULTS and _cites(rows, excerpt.changed, both) for one, rows in both.base.lines.items())
    if not excerpt.digits:
        return False
    same = any((one.kind, one.field) == (atom.kind, atom.field) for one in both.base.atoms)
    return same or all(line in excerpt.changed for line in both.lines(atom))


def _cites(rows: frozenset[int], changed: tuple[str, ...], both: Both) -> bool:
    return any(both.sample.lines[row] in changed for row in rows if row < len(both.sample.lines))


def _is_unused(atom: Atom, both: Both) -> bool:
    """Whether the whole output has the fact from another line, and leaves the line of this one unused."""
    rows = [both.rows.get(line, set()) for line in both.lines(atom)]
    if not rows or not all(rows):
        return False
    cited = frozenset().union(*(lines for one, lines in both.base.lines.items() if one[::2] == atom[::2]))
    if any(one <= cited for one in rows):
        return False
    about = _about(atom)
    return both.sample.damaged or any(_about(one) == about for one in both.base.atoms)


def _about(atom: Atom) -> tuple[str, str, str]:
    """What the fact is about, without the size of a flow and the name of a device."""
    words = without_name(atom).key.split(" ")
    return atom.kind, atom.field, " ".join(words[:2]) if len(words) > 2 else words[0]


def _value(atom: Atom) -> Atom:
    """The fact without the devices. The size and the operation of a flow stay."""
    words = atom.key.split(" ")
    flow = atom.kind == "Observation" and len(words) > 2
    return atom._replace(key=re.sub(" [^ ]+", "", atom.key, count=1) if flow else "")
