"""Compares what the readers get from an excerpt with what they get from the whole output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Any, NamedTuple

from bench.accuracy.excerpts.excerpt import Excerpt, File, Kind, Sample
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Evidence, Fact, Flow, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Verdict
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.host.texts import decoded

AT = 1795230000.0
_NAME = "excerpt"
# Values of a log as a whole, or of its clock: the time, the position, the number and the text of the lines.
_OF_THE_LOG = {
    "Event": {"at", "first", "until", "count", "recent", "bursts", "text", "place"},
    "NcclFailure": {"count", "text"},
}
_BESIDE = "beside"  # the flows at the same time: fewer if lines are missing
_TEXTS = {"name", "label", "model", "version", "firmware", "text", "error", "failure", "vbios", "product", "bios"}
_LISTS = {("Service", "state"), ("Optics", "alarms"), ("Optics", "warnings")}  # each item is of a line of its own
_DEVICES = ("gpu", "a", "b")  # fields with the key of a device
_FAULTS = ("clock_reasons", "fabric_faults")  # fields with a list of faults
_QUOTED = re.compile("'[^']+'")
_RANK = {"info": 0, "warning": 1, "critical": 2}
# The key of a device that the text does not name: its line, or its kind with a number ("nic 2", "hca/1", "gid3").
_PLACE = re.compile(
    rf"{_NAME}[0-9]*:[0-9]+(?:\.[0-9]+)?|gid[0-9]{{1,3}}"
    r"|(?:nic|nvme|module|port|hca|gpu)(?:(?:/|/module )?[ ]?[0-9]{1,3})?"
)
_ITEM = re.compile(r"[^,;()'\" ][^,;()'\"]*")
_WORD = re.compile(r"[\w.:]{3,}")
_TOKEN = re.compile(r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[a-z]+|[0-9]+")


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


@dataclass(frozen=True)
class Result:
    """The comparison of one excerpt, or of all excerpts that one transformation makes of a sample."""

    kept: frozenset[Atom] = frozenset()
    present: frozenset[Atom] = frozenset()  # what the excerpt has the information for
    unnamed: frozenset[Atom] = frozenset()  # present without the name of its device
    wrong: frozenset[Atom] = frozenset()
    new: tuple[Finding, ...] = ()
    silent: bool = False  # facts are lost, and the report names no gap
    blind: bool = False  # a fault is lost, and the verdict is ok


def read(files: Iterable[File]) -> Reading:
    """The facts and findings of some files."""
    return _read(tuple(files))


@lru_cache(4096)
def _read(files: tuple[File, ...]) -> Reading:
    records: list[Record] = []
    for number, file in enumerate(files):
        text = decoded(file) if isinstance(file, bytes) else file
        if isinstance(text, str):
            records += read_text(_NAME if len(files) == 1 else f"{_NAME}{number}", text, AT)
        else:
            records += read_text(_NAME, "", AT)
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
            yield Atom("Observation", key, _BESIDE, repr(one.about.beside)), cited


def _about(about: Flow | str) -> str:
    if isinstance(about, str):
        return about
    return f"{about.op} {'-'.join(about.ends)} {about.size} {about.via}"


def _line(cite: Evidence | None) -> frozenset[int]:
    return frozenset({int(float(cite.source.rpartition(":")[2])) - 1}) if cite else frozenset()


def compare(sample: Sample, excerpt: Excerpt, kind: Kind) -> Result:
    """What the excerpt keeps of the sample, and what it has beyond it."""
    base = read((sample.text,))
    found = _with_names(read(excerpt.files), base)
    text = " ".join(one for one in excerpt.files if isinstance(one, str)).lower()
    cited = {atom for atom, lines in base.lines.items() if excerpt.kept is None or (lines and lines <= excerpt.kept)}
    named = frozenset(atom for atom in cited if excerpt.kept is None or _named(atom.key, text))
    generic = {_unnamed(atom) for atom in found.atoms if _generic(atom.key)}
    kept = frozenset(atom for atom in cited if atom in found.atoms or _unnamed(atom) in generic)
    other = read((excerpt.other,)) if excerpt.other else None
    lost = bool(named - kept)
    return Result(
        kept=kept,
        present=named,
        unnamed=frozenset(atom for atom in cited - named if _can_be_known(atom, base, text)),
        wrong=frozenset(_wrong(sample, base, found, other, excerpt, kind)),
        new=tuple(
            one for one in _new(base, found, other, sample.text, excerpt) if not _renamed(one, base, sample, excerpt)
        ),
        silent=lost and kind == "whole" and found.gaps <= base.gaps,
        blind=kind == "whole" and found.verdict == "ok" and base.verdict in ("failed", "degraded"),
    )


def _can_be_known(atom: Atom, base: Reading, text: str) -> bool:
    """Whether the value is not the key of another device, or that device is named in the text."""
    value = atom.value.strip("'")
    return value not in {one.key for one in base.atoms} or _named(value, text)


def _wrong(
    sample: Sample, base: Reading, found: Reading, other: Reading | None, excerpt: Excerpt, kind: Kind
) -> Iterator[Atom]:
    """The facts that the whole output does not have.

    No reader sees a wrong digit, or that two records of different machines are one. So the facts of a line with a wrong
    digit may differ, and the fields of spliced records may be mixed.
    """
    allowed = base.atoms | (other.atoms if other else frozenset())
    keys = {(atom.kind, atom.key) for atom in allowed}
    anywhere = {_unnamed(atom) for atom in allowed}
    for atom in found.atoms - allowed:
        if not atom.field:
            fine = (atom.kind, atom.key) in keys or _generic(atom.key)
        else:
            fine = (bool(other) or _generic(atom.key)) and _unnamed(atom) in anywhere
        if kind != "whole":
            fine |= atom.field == _BESIDE or _is_part(atom, base) or _lacks(atom, allowed)
            fine |= _is_text(atom, allowed, excerpt)
            fine |= any(_transcribed(atom, line) for line in excerpt.changed)
            fine |= atom._replace(key="") in anywhere and _misnamed(atom.key, sample, excerpt)
            fine |= _misnamed(atom.value, sample, excerpt)
        if excerpt.digits:
            fine |= (atom.kind, atom.key) not in keys or _cites(found.lines[atom], excerpt)
        if not fine:
            yield atom


def _misnamed(name: str, sample: Sample, excerpt: Excerpt) -> bool:
    """Whether a damaged line has the name of a device. No reader can know that the name is wrong."""
    texts = f"{sample.text} {excerpt.other}", " ".join(map(str, excerpt.files))
    before, after = (set(_WORD.findall(text.lower())) for text in texts)
    words = {form for word in _WORD.findall(name.lower()) for form in (word, word.removesuffix(".0"))}
    return any(word in after and word not in before for word in words)


def _cites(lines: Iterable[int], excerpt: Excerpt) -> bool:
    """Whether one of the lines is a changed one."""
    (text,) = excerpt.files
    written = text.split("\n") if isinstance(text, str) else []
    return any(line < len(written) and written[line] in excerpt.changed for line in lines)


def _lacks(atom: Atom, known: Iterable[Atom]) -> bool:
    """Whether it is the rate of a flow whose size or operation is not in the excerpt."""
    words = atom.key.split(" ")
    if atom.kind != "Observation" or len(words) < 3 or not (words[2] == "None" or words[0] == "collective"):
        return False
    same = (one.key.split(" ") for one in known if one[2:] == atom[2:])
    return any(one[1] == words[1] and one[3:] == words[3:] for one in same if len(one) > 2)


def _is_text(atom: Atom, known: Iterable[Atom], excerpt: Excerpt) -> bool:
    """Whether it is a damaged name or message. No reader can know it, and no rule compares it."""
    words = atom.value.strip("'\"").lower().split()[1:]  # the first one can be the maker, in other words
    if atom.field in _TEXTS and words and any(" ".join(words) in line.lower() for line in excerpt.changed):
        return True
    return atom.field in _TEXTS and any(
        one.field == atom.field and (one.value[1:-1] in atom.value or atom.value[1:-1] in one.value or _near(one, atom))
        for one in known
    )


def _near(one: Atom, other: Atom) -> bool:
    return SequenceMatcher(None, one.value, other.value).ratio() > 0.7


def _is_part(atom: Atom, base: Reading) -> bool:
    """Whether it is a part of a sum of errors, or of a list, because lines are missing."""
    if (atom.kind, atom.field) in _LISTS:
        every = {item for one in base.lines if one.kind == atom.kind for item in _ITEM.findall(one.value)}
        return every.issuperset(_ITEM.findall(atom.value))
    if atom.field in _FAULTS:
        return any(
            one.field == atom.field and set(_QUOTED.findall(atom.value)) < set(_QUOTED.findall(one.value))
            for one in base.lines
            if atom.value != "()"
        )
    if atom.field in ("rate", "bus_bandwidth", "latency"):
        return False
    if atom.kind != "Observation" and not atom.field.startswith("ecc_"):
        return False
    whole = _unnamed(atom)[:3] if _generic(atom.key) else atom[:3]
    same = (one for one in base.lines if whole in (one[:3], _unnamed(one)[:3]))
    return _is_number(atom.value) and any(float(one.value) >= float(atom.value) for one in same)


def _generic(key: str) -> bool:
    """Whether the key names a kind of device, the line of a device without a name, or a part or a copy of these."""
    words = key.split(" ")
    device = words[1] if len(words) > 2 else key.partition("/")[0]
    return not any(map(str.isdigit, device)) or bool(_PLACE.fullmatch(device))


def _unnamed(atom: Atom) -> Atom:
    """The atom without the name of its device and port. The number of a link and the kinds of ends of a copy stay."""
    words = atom.key.split(" ")
    if len(words) > 2:
        ends = re.sub("[0-9]+", "", words[1])
        key = " ".join((words[0], ends, *words[2:]))
    else:
        part = atom.key.partition("/")[2].rpartition("/")[2]
        key = part if any(map(str.isalpha, part)) and not part.startswith(("gid", "module")) else ""  # no port
    return atom._replace(key=key, value="" if atom.field in _DEVICES else atom.value)


def _with_names(found: Reading, base: Reading) -> Reading:
    """The reading with the keys that the whole output gives to the GPUs whose PCI address is the key."""
    names = {atom.value[1:-1]: atom.key for atom in base.lines if atom[::2] == ("Gpu", "address")}
    names = {address: key for address, key in names.items() if address != key}

    def renamed(key: str) -> str:
        device, slash, rest = key.partition("/")
        return f"{names.get(device, device)}{slash}{rest}"

    lines: dict[Atom, frozenset[int]] = {}
    for atom, cited in found.lines.items():
        one = atom._replace(key=renamed(atom.key))
        lines[one] = lines.get(one, frozenset()) | cited
    return replace(found, lines=lines) if names else found


def _named(key: str, text: str) -> bool:
    """Whether each part of the key is in the text: "gpu", "3", "53:00.0"."""
    words = set(_TOKEN.findall(text))
    return all(word in words or word in text and not word.isdigit() for word in _TOKEN.findall(key.lower()))


def _transcribed(atom: Atom, line: str) -> bool:
    """Whether a value or a name is copied from a damaged line, so that no reader can know that it is wrong."""
    value = atom.value.strip("'\"")
    numbers = {float(word) for word in re.findall(r"[0-9]+(?:\.[0-9]+)?", line)}
    return (
        (value.lower() in line.lower() if len(value) > 1 else value in line.split())
        or (len(atom.key) > 2 and atom.key.lower() in line.lower())
        or (_is_number(value) and any(_scaled(float(value), number) for number in numbers))
    )


def _is_number(value: str) -> bool:
    return bool(re.fullmatch(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", value))


def _scaled(value: float, number: float) -> bool:
    """Whether the value is the number in another unit: bits, powers of 1000 and of 1024."""
    units = (a * b for a in (1, 8, 1 / 8) for b in (1, 1e3, 1e6, 1e9, 2**10, 2**20, 2**30, 2**40))
    return value == number or any(abs(value - number * unit) <= 1e-6 * abs(value) for unit in units)


def _new(base: Reading, found: Reading, other: Reading | None, text: str, excerpt: Excerpt) -> Iterator[Finding]:
    """The findings that the whole output lacks, or has with a lower severity.

    A finding from undamaged lines is not new if the whole output has one about the same device that includes it: "GPU
    reset required" alone is a finding, and beside memory rows that wait for the reset it is none of its own. The same
    lines can show the same fault of a device with another name, or of several. No reader sees a wrong digit, so a
    finding from the line with it, or one about another device because of it, is not new.
    """
    known = {**(other.findings if other else {}), **base.findings}
    for (code, subject), finding in found.findings.items():
        texts = [one.text for one in finding.evidence]
        same = [one for key, one in known.items() if key[0] == code and (key[1] == subject or _generic(subject))]
        if all(one in text for one in texts):
            same += [one for key, one in base.findings.items() if key[1] == subject or _generic(subject)]
        same += [one for key, one in base.findings.items() if key[0] == code and _share(one, texts)]
        if excerpt.digits and (
            any(key[0] == code for key in known) or any(one in line for one in texts for line in excerpt.changed)
        ):
            continue
        if all(_RANK[one.severity] < _RANK[finding.severity] for one in same):
            yield finding


def _renamed(one: Finding, base: Reading, sample: Sample, excerpt: Excerpt) -> bool:
    """Whether it is a finding of the whole output about a device whose name is of a damaged line, or a wrong digit
    gives it.
    """
    same = (other for (code, _), other in base.findings.items() if code == one.code)
    known = any(_RANK[other.severity] >= _RANK[one.severity] for other in same)
    if excerpt.digits:
        return known or _shows(one, excerpt)
    return known and _misnamed(one.subject, sample, excerpt)


def _shows(one: Finding, excerpt: Excerpt) -> bool:
    """Whether the evidence of a finding is a line with a wrong digit."""
    changed = {line.strip() for line in excerpt.changed}
    return any(cite.text in changed for cite in one.evidence)


def _share(finding: Finding, texts: Iterable[str]) -> bool:
    """Whether the finding cites one of these lines."""
    return any(one.text in texts for one in finding.evidence)


def together(results: Iterable[Result]) -> Result:
    """The result of all excerpts of one sample."""
    several = list(results)
    return Result(
        kept=frozenset().union(*(one.kept for one in several)),
        present=frozenset().union(*(one.present for one in several)),
        unnamed=frozenset().union(*(one.unnamed for one in several)),
        wrong=frozenset().union(*(one.wrong for one in several)),
        new=tuple(finding for one in several for finding in one.new),
        silent=any(one.silent for one in several),
        blind=any(one.blind for one in several),
    )
