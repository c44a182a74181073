"""What the readers and rules make of some files: the values of their records, and the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, NamedTuple

from bench.accuracy.excerpts.excerpt import File
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Evidence, Fact, Flow, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Verdict
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.host.texts import decoded

AT = 1795230000.0
NAME = "excerpt"
BESIDE = "beside"  # the flows at the same time: fewer if lines are missing
# Values of a log as a whole, or of its clock: the time, the position, the number and the text of the lines.
_OF_THE_LOG = {
    "Event": {"at", "first", "until", "count", "recent", "bursts", "text", "place"},
    "NcclFailure": {"count", "text"},
}


class Atom(NamedTuple):
    """One field of a fact, or one value of an observation."""

    kind: str
    key: str
    field: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {self.field} = {self.value}"


@dataclass(frozen=True)
class Reading:
    """Everything that comes of some files. `lines` has the numbers (from 0) of the lines that an atom cites."""

    lines: Mapping[Atom, frozenset[int]]
    findings: Mapping[tuple[str, str], Finding]  # without those of severity info
    verdict: Verdict
    gaps: int

    @property
    def atoms(self) -> frozenset[Atom]:
        return frozenset(self.lines)


def read(files: Iterable[File]) -> Reading:
    """The facts and findings of some files."""
    return _read(tuple(files))


@lru_cache(4096)
def _read(files: tuple[File, ...]) -> Reading:
    records: list[Record] = []
    for number, file in enumerate(files):
        text = decoded(file) if isinstance(file, bytes) else file
        if isinstance(text, str):
            records += read_text(NAME if len(files) == 1 else f"{NAME}{number}", text, AT)
        else:
            records += read_text(NAME, "", AT)
    report = evaluate(assemble(records, Site(), AT, origin="dumps"))
    grave = [one for one in report.findings if one.severity != "info"]
    lines: dict[Atom, frozenset[int]] = {}
    for atom, cited in (pair for one in records for pair in _atoms(one)):
        lines[atom] = lines.get(atom, frozenset()) | cited
    gaps = sum(isinstance(one, NotChecked) for one in records)
    return Reading(lines, {(one.code, one.subject): one for one in grave}, report.verdict, gaps)


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    ignored = {"key", "cites", *_OF_THE_LOG.get(kind.__name__, ())}
    return tuple(field.name for field in fields(kind) if field.name not in ignored)


def _atoms(one: Record) -> Iterator[tuple[Atom, frozenset[int]]]:
    if isinstance(one, Fact):
        of: Any = type(one)  # mypy regards the class as unhashable, like its instances
        kind, key = of.__name__, one.key
        if isinstance(one, Event):  # its key has details of the message
            key = f"{one.kind} {one.code} {one.subject}"
        known = {name: value for name in _fields(of) if (value := getattr(one, name)) is not None}
        for name, value in known.items():
            yield Atom(kind, key, name, repr(value)), _line(one.cites.get(name))
        if not known:
            yield Atom(kind, key, "", ""), frozenset()
    elif isinstance(one, Observation):
        key, cited = _about(one.about), _line(one.evidence)
        yield Atom("Observation", key, one.quantity, repr(one.value)), cited
        if isinstance(one.about, Flow) and one.about.beside:
            yield Atom("Observation", key, BESIDE, repr(one.about.beside)), cited


def _about(about: Flow | str) -> str:
    if isinstance(about, str):
        return about
    return f"{about.op} {'-'.join(about.ends)} {about.size} {about.via}"


def _line(cite: Evidence | None) -> frozenset[int]:
    return frozenset({int(float(cite.source.rpartition(":")[2])) - 1}) if cite else frozenset()
