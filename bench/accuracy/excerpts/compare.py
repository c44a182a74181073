"""Compares what the readers get from an excerpt with what they get from the whole output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy.excerpts.excerpt import Excerpt, Kind, Sample
from bench.accuracy.excerpts.reading import Atom, Needs, Reading, needs, read
from bench.accuracy.excerpts.unavoidable import is_generic, misnamed, without_name
from bench.accuracy.excerpts.wrong import Both, wrong
from linkgauge.models.report import Finding

_RANK = {"info": 0, "warning": 1, "critical": 2}
_TOKEN = re.compile(r"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[a-z]+|[0-9]+")


class Result(Struct, frozen=True):
    """The comparison of one excerpt, or of all excerpts that one transformation makes of a sample."""

    kept: frozenset[Atom] = frozenset()
    present: frozenset[Atom] = frozenset()  # what the excerpt has the information for
    bare: frozenset[Atom] = frozenset()  # its line is present, and a line that it needs is not
    wrong: frozenset[Atom] = frozenset()
    new: tuple[Finding, ...] = ()
    silent: bool = False  # facts are lost, and the report names no gap
    blind: bool = False  # a fault is lost, and the verdict is ok


def compare(sample: Sample, excerpt: Excerpt, kind: Kind) -> Result:
    """What the excerpt keeps of the sample, and what it has beyond it."""
    base = read((sample.text,))
    found = _with_names(read(excerpt.files), base)
    text = " ".join(one for one in excerpt.files if isinstance(one, str)).lower()
    cited = {atom for atom, lines in base.lines.items() if excerpt.kept is None or (lines and lines <= excerpt.kept)}
    needed = needs(sample.text) if excerpt.kept is not None else None
    named = frozenset(
        atom
        for atom in cited
        if needed is None or excerpt.kept is None or needed.atoms[atom] <= excerpt.kept and _named(atom.key, text)
    )
    generic = {without_name(atom) for atom in found.atoms if is_generic(atom.key)}
    kept = frozenset(atom for atom in cited if atom in found.atoms or without_name(atom) in generic)
    other = read((excerpt.other,)) if excerpt.other else None
    lost = bool(named - kept)
    return Result(
        kept=kept,
        present=named,
        bare=frozenset(atom for atom in cited - named if _can_be_known(atom, base, text)),
        wrong=frozenset(wrong(Both(sample, excerpt, kind, base, found, other))),
        new=tuple(
            one for one in _new(base, found, other, sample.text, excerpt) if not _renamed(one, base, sample, excerpt)
        ),
        silent=lost and kind == "whole" and found.gaps <= base.gaps,
        blind=found.verdict == "ok" and base.verdict in ("failed", "degraded") and _shows_fault(base, needed, excerpt),
    )


def _shows_fault(base: Reading, needed: Needs | None, excerpt: Excerpt) -> bool:
    """Whether the excerpt has all lines that a fault needs."""
    if needed is None or excerpt.kept is None:
        return not excerpt.changed
    return any(
        needed.findings[key] and needed.findings[key] <= excerpt.kept and _has_evidence(finding, excerpt.kept)
        for key, finding in base.findings.items()
    )


def _has_evidence(finding: Finding, kept: frozenset[int]) -> bool:
    """Whether a line of the evidence is kept. Of two lines that show a fault, the whole output needs neither."""
    numbers = (one.source.rpartition(":")[2] for one in finding.evidence)
    rows = {int(float(number)) - 1 for number in numbers if number.replace(".", "").isdecimal()}
    return not rows or bool(rows & kept)


def _can_be_known(atom: Atom, base: Reading, text: str) -> bool:
    """Whether the value is not the key of another device, or that device is named in the text."""
    value = atom.value.strip("'")
    return value not in {one.key for one in base.atoms} or _named(value, text)


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


def _new(base: Reading, found: Reading, other: Reading | None, text: str, excerpt: Excerpt) -> Iterator[Finding]:
    """The findings that the whole output lacks, or has with a lower severity.

    A finding from undamaged lines is not new if the whole output has one about the same device that includes it: "GPU
    reset required" alone is a finding, and beside memory rows that wait for the reset it is none of its own. The same
    lines can show the same fault of a device with another name, or of several. No reader sees a wrong digit, so a
    finding from the line with it, or one about another device because of it, is not new. A finding of severity info
    names a fault that other lines excuse: it is over, or all devices of the kind have it. Without these lines it is the
    same fault, so it is not new. It is new if it is critical and certain and about a state.

    A damaged output that has an undamaged line with a fault of this severity ("Link 2: <inactive>") is not the output
    of a healthy device, whatever the name of the device is. The pieces show whether the line alone is read well.
    """
    known = {**(other.findings if other else {}), **base.findings}
    excused = {**(other.excused if other else {}), **base.excused}
    for (code, subject), finding in found.findings.items():
        texts = [one.text for one in finding.evidence]
        same = [one for key, one in known.items() if key[0] == code and (key[1] == subject or is_generic(subject))]
        if all(one in text for one in texts):
            same += [one for key, one in base.findings.items() if key[1] == subject or is_generic(subject)]
        same += [one for key, one in known.items() if key[0] == code and _share(one, texts)]
        certain = finding.severity == "critical" and finding.confidence == "certain"
        if finding.kind == "event":
            same += [finding for key in excused if key == (code, subject)]
        elif not certain:
            same += [finding for key, one in excused.items() if key[0] == code and _share(one, texts)]
        if excerpt.changed or other:
            same += [one for line in _lines(finding, text, excerpt) for one in _explicit(finding, read((line,)))]
        if excerpt.digits and (
            any(key[0] == code for key in known) or any(_copied(one, line) for one in texts for line in excerpt.changed)
        ):
            continue
        if all(_RANK[one.severity] < _RANK[finding.severity] for one in same):
            yield finding


def _copied(cite: str, line: str) -> bool:
    """Whether the evidence is the line, or a value of JSON in it: "name: value"."""
    value = cite.rpartition(": ")[2]
    return cite in line or bool(re.search(rf": ?\"?{re.escape(value)}(?![\w.])", line) and line.lstrip()[:1] in '{"')


def _lines(finding: Finding, text: str, excerpt: Excerpt) -> Iterator[str]:
    """The undamaged lines that show the finding."""
    cited = {one.text for one in finding.evidence}
    yield from (line for line in f"{text}{excerpt.other}".split("\n") if line.strip() in cited)


def _explicit(finding: Finding, alone: Reading) -> Iterator[Finding]:
    """The finding or a graver one, if a line alone states the fault."""
    yield from alone.findings.values()
    codes = {code for code, _ in alone.excused}
    if finding.code in codes or any(atom[2:] == ("active", "False") for atom in alone.atoms):
        yield finding


def _renamed(one: Finding, base: Reading, sample: Sample, excerpt: Excerpt) -> bool:
    """Whether it is a finding of the whole output about a device whose name is of a damaged line, or a wrong digit
    gives it.
    """
    same = (other for (code, _), other in base.findings.items() if code == one.code)
    known = any(_RANK[other.severity] >= _RANK[one.severity] for other in same)
    if excerpt.digits:
        return known or _shows(one, excerpt)
    return known and misnamed(one.subject, sample, excerpt)


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
        bare=frozenset().union(*(one.bare for one in several)),
        wrong=frozenset().union(*(one.wrong for one in several)),
        new=tuple(finding for one in several for finding in one.new),
        silent=any(one.silent for one in several),
        blind=any(one.blind for one in several),
    )
