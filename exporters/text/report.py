"""A report as text in 80 columns: verdict, findings (worst first), gaps, and the sources that were read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...models.catalog import codes
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence
from ...models.facts.units import as_bytes, as_gigabytes, as_megahertz, as_transfers
from ...models.report import SEVERITIES, Finding, Report
from .cost import cost, slower
from .coverage import coverage_text, scope_of
from .measured import measured
from .not_checked import gaps
from .sources import sources_read
from .terminal import Paint, hanging, painter, safe, short, wrap
from .vocabulary import basis_in_words, counted, device_counts, listed

WIDTH = 80
_LONGEST = 160  # characters of a line of evidence; the JSON has the full line
_MOST = 4  # rows per label; names per row
# With more than _WHOLE blocks each block is brief, so that three faults fit on one screen of 60 lines.
_WHOLE, _BRIEF_ROWS, _BRIEF_SOURCE, _BRIEF_STEPS = 2, 2, 90, 170
_MOST_MESSAGES = 16  # messages shown for one group of findings
_ABOVE = re.compile(r"^sys/devices/\S*/(?=[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/)")  # bridges above a device
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CONFIDENCES = ("certain", "likely", "possible")
_ORIGINS = {"live": "", "capture": "from a capture", "dumps": "from dumps"}
_UNITS = {
    "bytes_per_second": as_gigabytes,
    "transfers_per_second": as_transfers,
    "bytes": as_bytes,
    "hertz": as_megahertz,
}
_COUNTED = {  # units of counts, for one and for several
    "gpus": ("GPU", "GPUs"),
    "CPUs": ("CPU", "CPUs"),
    "devices": ("device", "devices"),
    "lanes": ("lane", "lanes"),
    "links": ("link", "links"),
    "switches": ("switch", "switches"),
}

Getter: TypeAlias = Callable[[Finding], Iterable[str]]


def as_text(report: Report, colour: bool) -> str:
    """The report as text. Control characters from outside are escaped; `colour` adds our own escape sequences."""
    paint = painter(colour)
    blocks = list(_blocks(report.findings, paint))
    rates = measured(report, paint) if len(blocks) <= _WHOLE else ()  # the blocks name the slow flows
    sections = (
        _head(report, paint),
        *blocks,
        rates,
        cost(report, paint),
        _gaps(report, paint),
        _looked_at(report, len(blocks) > _WHOLE),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _head(report: Report, paint: Paint) -> Iterator[str]:
    """The verdict, node, machine type and time; then the number of findings, or why the verdict is unknown."""
    machine = safe(report.profile.name) if report.profile else ""
    context = "as the job sees it" if report.context == "job" else ""
    about = (
        safe(report.node or "unnamed node"),
        machine,
        safe(report.taken_at or ""),
        _ORIGINS[report.source],
        context,
    )
    yield from _painted(_headline(report), "  ".join(filter(None, about)), report.verdict, paint)
    if report.verdict == "unknown":
        yield from wrap(_why_unknown(report), WIDTH)
    kinds = Counter("silenced" if finding.silenced else finding.severity for finding in report.findings)
    if kinds:
        yield ", ".join(f"{kinds[kind]} {kind}" for kind in (*SEVERITIES, "silenced") if kinds[kind])


def _headline(report: Report) -> str:
    """ "OK", or "OK for NVLink state of 8 GPUs, 2 checks not evaluated" for dumps, which show a part of a machine."""
    missing = sum(not evaluated for evaluated in report.checks.values())
    limited = missing and report.verdict in ("ok", "degraded")
    scope = f" for {scope_of(report)}" if report.verdict == "ok" and report.source == "dumps" else ""
    return report.verdict.upper() + scope + (f", {counted(missing, 'check')} not evaluated" if limited else "")


def _why_unknown(report: Report) -> str:
    vital = [
        code for code, evaluated in report.checks.items() if not evaluated and code in codes() and codes()[code].vital
    ]
    if vital:
        return f"Do not take this node for healthy: {', '.join(vital)} could not be judged. See NOT CHECKED."
    if broken := [safe(run.name) for run in report.runs if not run.ok]:
        return f"Do not take this node for healthy: {', '.join(broken)} broke off, a fault in linkgauge itself."
    if stale := [safe(finding.code) for finding in report.findings if finding.stale and not finding.silenced]:
        return f"Do not take this node for healthy: {', '.join(dict.fromkeys(stale))} could not be evaluated again."
    if any(finding.code == "not-enough-evidence" for finding in report.findings):
        return "There is a symptom without a known cause."
    if any(gap.reason is Reason.INCOMPLETE for gap in report.not_checked):
        return "A part of the input is missing or was not read. The rest shows no fault. See NOT CHECKED."
    return "Nothing could be judged."


def _blocks(findings: Iterable[Finding], paint: Paint) -> Iterator[Iterator[str]]:
    """One block per group of findings with the same code, severity, confidence, cause and remedy, worst first."""
    groups: dict[object, list[Finding]] = {}
    for finding in sorted(findings, key=_rank):
        alike = (finding.code, finding.severity, finding.confidence, finding.cause, finding.remedy, finding.silenced)
        groups.setdefault(alike, []).append(finding)
    for group in groups.values():
        yield _block(group, paint, len(groups) > _WHOLE)


def _rank(finding: Finding) -> tuple[bool, int, int]:
    return bool(finding.silenced), SEVERITIES.index(finding.severity), _CONFIDENCES.index(finding.confidence)


def _block(group: Sequence[Finding], paint: Paint, brief: bool) -> Iterator[str]:
    group = [_addressed(group[0])] if len(group) == 1 else group
    first = group[0]
    silenced = bool(first.silenced)
    title = "SILENCED" if silenced else first.severity.upper()
    if first.confidence != "certain":
        title += f" ({first.confidence})"
    named = safe(first.subject) if safe(first.subject_name or "") in safe(first.message) else _subject(first)
    named = "this node" if first.subject == "node" else named
    about = f"{safe(first.code)}  {named if len(group) == 1 else f'{len(group)} alike'}"
    yield from _painted(title, about, "dim" if silenced else first.severity, paint)
    yield from _messages(group)
    rows: tuple[tuple[str, Getter], ...] = (("reason", lambda f: [f.silenced or ""]),) if silenced else _ROWS
    if brief and first.severity == "info" and not silenced and first.code != "not-enough-evidence":
        return  # an info needs no action; "not-enough-evidence" says what to collect
    for label, get in rows:
        yield from _row(label, group, get, paint, brief)


def _addressed(finding: Finding) -> Finding:
    """Replace the placeholder "-i GPU" in the remedy by the address of the GPU. Groups keep the placeholder."""
    if not finding.remedy or not _PCI_ADDRESS.fullmatch(finding.subject):
        return finding
    return replace(finding, remedy=finding.remedy.replace("-i GPU", f"-i {finding.subject}"))


def _messages(group: Sequence[Finding]) -> Iterator[str]:
    """The messages of a group. Findings with the same message share a line that begins with their subjects."""
    by_message: dict[str, list[str]] = {}
    for finding in group:
        message, name = safe(finding.message), safe(finding.subject_name or "")
        subject = safe(finding.subject) if name in message else _subject(finding)
        by_message.setdefault(message, []).append(subject)
    for message, subjects in list(by_message.items())[:_MOST_MESSAGES]:
        text = message if len(group) == 1 else f"{listed(subjects, 8, '; ')}: {message}"
        yield from hanging("  ", text, WIDTH, indent=2 if len(group) == 1 else 4)
    if len(by_message) > _MOST_MESSAGES:
        yield f"  and {len(by_message) - _MOST_MESSAGES} more, all in --format json"


def _row(label: str, group: Sequence[Finding], get: Getter, paint: Paint, brief: bool) -> Iterator[str]:
    """The rows of one label: once if all findings of the group agree, else one per subject."""
    most = _LONGEST if label == "seen" else _BRIEF_SOURCE if brief and label in ("expected", "source") else None
    rows = _BRIEF_ROWS if brief else _MOST
    values = [(safe(finding.subject), [short(text, most) for text in get(finding)]) for finding in group]
    texts = values[0][1]
    if any(others != texts for _, others in values):
        texts = [f"{subject}: {text}" for subject, few in values for text in few[:1]]
    texts = [_first_steps(text, group[0].code) for text in texts] if brief and label == "do" else texts
    shown = texts if len(texts) <= rows + 1 else [*texts[:rows], f"and {len(texts) - rows} more"]
    for index, text in enumerate(shown):
        first = f"  {'' if index else label:<10}"
        lines = list(hanging(first, text, WIDTH))
        yield f"{paint(first, 'dim')}{lines[0][len(first) :]}" if index == 0 else lines[0]
        yield from lines[1:]


def _first_steps(text: str, code: str) -> str:
    """The first (cheapest) steps of a remedy that fit, and a pointer to the others."""
    steps = re.split(r"(?<=[.]) (?=[A-Z])", text)
    if len(text) <= _BRIEF_STEPS or len(steps) == 1:
        return text
    first = steps[:1]
    while len(" ".join((*first, steps[len(first)]))) <= _BRIEF_STEPS:
        first.append(steps[len(first)])
    usual = code in codes() and steps[-1] in " ".join(codes()[code].fix)
    return f"{' '.join(first)} Further steps: {f'linkgauge explain {code}' if usual else '--format json'}"


def _subject(finding: Finding) -> str:
    """The name of the subject, with its second name if it has one."""
    subject = "this node" if finding.subject == "node" else safe(finding.subject)
    name = safe(finding.subject_name or "")
    return f"{subject}, {name}" if name and name != subject else subject


def _expected(finding: Finding) -> Iterable[str]:
    if finding.expected_source is None or not _compares(finding):
        return []
    number = quantity(finding.expected, finding.unit)
    basis = f" ({basis_in_words(finding.basis)})" if finding.basis else ""
    return [f"{number + ': ' if number else ''}{finding.expected_source}{basis}"]


def _source(finding: Finding) -> Iterable[str]:
    """The source that defines the meaning of a log line."""
    return [finding.expected_source] if finding.expected_source and not _compares(finding) else []


def _compares(finding: Finding) -> bool:
    return finding.expected is not None or finding.basis is not None


def quantity(value: float | str | None, unit: str | None) -> str:
    """A value of a finding with its unit: "63.0 GB/s"; "" for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if unit in _UNITS:
        return _UNITS[unit](value)
    number = str(value) if isinstance(value, int) else f"{value:g}"
    if unit in _COUNTED:
        return f"{number} {_COUNTED[unit][value != 1]}"
    return f"{number} {unit.replace('_', ' ')}" if unit and unit != "count" else number


def seen(evidence: Evidence) -> str:
    """The source of the evidence, without the PCI bridges above the device, and its text."""
    return f"{_ABOVE.sub('', evidence.source)}: {evidence.text or '(empty)'}"


def _impact(finding: Finding) -> Iterable[str]:
    return slower(finding.impact)


def _location(finding: Finding) -> Iterable[str]:
    known = [f"{name.replace('_', ' ')} {value}" for name, value in finding.location.items() if value is not None]
    return [", ".join(known)] if known else []


_ROWS: tuple[tuple[str, Getter], ...] = (
    ("cause", lambda finding: [finding.cause] if finding.cause and finding.cause not in finding.message else []),
    ("expected", _expected),
    ("source", _source),
    ("seen", lambda finding: [seen(one) for one in finding.evidence]),
    (
        "explains",
        lambda finding: (
            [listed([one.replace(":", " of ", 1) for one in finding.explains], _MOST)] if finding.explains else []
        ),
    ),
    ("impact", _impact),
    ("where", _location),
    ("stale", lambda finding: [finding.stale] if finding.stale else []),
    ("since", lambda finding: [finding.since] if finding.since else []),
    ("do", lambda finding: [finding.remedy] if finding.remedy else []),
)


def _gaps(report: Report, paint: Paint) -> Iterator[str]:
    not_evaluated = [safe(code) for code, evaluated in report.checks.items() if not evaluated]
    if not report.not_checked and not not_evaluated:
        return
    yield paint("NOT CHECKED", "bold")
    for gap in gaps(report.not_checked):
        yield from hanging("  ", gap.what, WIDTH, indent=6)
        for label, text in (("why", gap.why), ("how", gap.how)):
            if text:
                first, *others = hanging(f"    {label}  ", text, WIDTH)
                yield first.replace(label, paint(label, "dim"), 1)
                yield from others
    if not_evaluated:
        yield from hanging("  ", f"so these could not be judged: {', '.join(not_evaluated)}", WIDTH, indent=4)


def _looked_at(report: Report, brief: bool) -> Iterator[str]:
    """The basis of the verdict: checks, devices and sources."""
    kinds = [device.kind for device in report.topology.devices]
    evaluated = sum(report.checks.values())
    parts = [f"Judged {evaluated} of {counted(len(report.checks), 'check')}" if report.checks else "Judged nothing"]
    parts += [f"over {', '.join(device_counts(kinds))}"] if device_counts(kinds) else []
    yield from wrap(" ".join(parts) + "." + sources_read(report, brief), WIDTH)
    if evidence := coverage_text(report.coverage, brief):
        yield from wrap(f"Evidence: {evidence}.", WIDTH)
    if any(not finding.silenced for finding in report.findings):
        yield "What a code means and how to see it: linkgauge explain CODE"


def _painted(title: str, rest: str, style: str, paint: Paint) -> Iterator[str]:
    first, *others = hanging(f"{title}  ", rest, WIDTH, indent=4)
    yield first.replace(title, paint(title, style), 1)
    yield from others
