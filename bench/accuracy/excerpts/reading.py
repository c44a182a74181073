"""What the readers and rules make of some files: the values of their records, and the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from bench.accuracy.excerpts.excerpt import File
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Evidence, Fact, Flow, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Verdict
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.archives import is_archive, unpack
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.host.entries import Entry
from linkgauge.probes.host.texts import decoded

AT = 1795230000.0
NAME = "excerpt"
T = TypeVar("T")
_MOST_LINES = 300  # of a sample whose lines are left out one by one
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


class Reading(Struct, frozen=True):
    """Everything that comes of some files. `lines` has the numbers (from 0) of the lines that an atom cites."""

    lines: Mapping[Atom, frozenset[int]]
    findings: Mapping[tuple[str, str], Finding]
    excused: Mapping[tuple[str, str], Finding]  # those of severity info
    verdict: Verdict
    gaps: int

    @property
    def atoms(self) -> frozenset[Atom]:
        return frozenset(self.lines)


def read(files: Iterable[File]) -> Reading:
    """The facts and findings of some files."""
    return _read(tuple(files))


class Needs(Struct, frozen=True):
    """The lines without which the whole output has a fact or finding no more."""

    atoms: Mapping[Atom, frozenset[int]]
    findings: Mapping[tuple[str, str], frozenset[int]]


@lru_cache(256)
def needs(text: str) -> Needs:
    """What is lost if one line is missing: for each line that is not empty."""
    whole, lines = read((text,)), text.rstrip("\n").split("\n")
    atoms: dict[Atom, set[int]] = {atom: set(cited) for atom, cited in whole.lines.items()}
    findings: dict[tuple[str, str], set[int]] = {key: set() for key in whole.findings}
    for row in (row for row, line in enumerate(lines) if line.strip() and len(lines) <= _MOST_LINES):
        rest = _read(("\n".join([*lines[:row], *lines[row + 1 :]]) + "\n",))
        for atom in whole.atoms - rest.atoms:
            atoms[atom].add(row)
        for key in whole.findings.keys() - rest.findings.keys():
            findings[key].add(row)
    return Needs(_frozen(atoms), _frozen(findings))


def _frozen(several: Mapping[T, set[int]]) -> dict[T, frozenset[int]]:
    return {key: frozenset(rows) for key, rows in several.items()}


@lru_cache(4096)
def _read(files: tuple[File, ...]) -> Reading:
    records: list[Record] = []
    for number, file in enumerate(files):
        text = _text(file) if isinstance(file, bytes) else file
        if isinstance(text, str):
            records += read_text(NAME if len(files) == 1 else f"{NAME}{number}", text, AT)
        else:
            records += read_text(NAME, "", AT)
    report = evaluate(assemble(records, Site(), AT, origin="dumps"))
    findings: dict[bool, dict[tuple[str, str], Finding]] = {True: {}, False: {}}
    for finding in report.findings:
        findings[finding.severity == "info"][finding.code, finding.subject] = finding
    lines: dict[Atom, frozenset[int]] = {}
    for atom, cited in (pair for one in records for pair in _atoms(one)):
        lines[atom] = lines.get(atom, frozenset()) | cited
    gaps = sum(isinstance(one, NotChecked) for one in records)
    return Reading(lines, findings[False], findings[True], report.verdict, gaps)


def _text(content: bytes) -> Entry:
    """The text of a file, which may be compressed."""
    return next(iter(unpack(NAME, content).values())) if is_archive(content[:512]) else decoded(content)


@cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    ignored = {"key", "cites", *_OF_THE_LOG.get(kind.__name__, ())}
    return tuple(name for name in kind.__struct_fields__ if name not in ignored)


def _atoms(one: Record) -> Iterator[tuple[Atom, frozenset[int]]]:
    if isinstance(one, Fact):
        of: Any = type(one)  # mypy regards the class as unhashable, like its instances
        kind, key = of.__name__, one.key
        if isinstance(one, Event):  # its key has details of the message
            key = f"{one.subject}/{one.kind} {one.code}".replace(" ", "_")
        known = {name: value for name in _fields(of) if (value := getattr(one, name)) is not None}
        for name, value in known.items():
            yield Atom(kind, key, name, repr(value)), _line(one.cites.get(name) or one.cites.get("text"))
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
