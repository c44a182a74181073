"""Findings as text: one line for equal findings, and blocks with details."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from ...models.catalog import NOT_ENOUGH_EVIDENCE, codes
from ...models.diagnosis.headlines import about
from ...models.inventory.device_names import place_in_words
from ...models.report import SEVERITIES, Finding
from .cost import cost_lines
from .quantities import quantity, seen
from .terminal import WIDTH, Paint, hanging, safe, short
from .vocabulary import basis_in_words, listed

Group: TypeAlias = Sequence[Finding]
Getter: TypeAlias = Callable[[Finding], Iterable[str]]
_LONGEST = 160  # characters of a line of evidence; the JSON has the full line
_MOST_NAMES = 8
_MOST_EVIDENCE = 3
_CONFIDENCES = ("certain", "likely", "possible")


class Detail(Enum):
    """The most lines of a block."""

    ALL = 10_000
    WHOLE = 12
    SHORTER = 7
    BRIEF = 6
    NONE = 0


def details_of(groups: Sequence[Group], full: bool) -> Detail:
    """The amount of detail with which the findings fit on a screen: three in 40 lines."""
    faults = sum(not (one[0].silenced or one[0].severity == "info") for one in groups)
    steps = ((2, Detail.WHOLE), (3, Detail.SHORTER), (8, Detail.BRIEF))
    return Detail.ALL if full else next((detail for most, detail in steps if faults <= most), Detail.NONE)


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Equal findings together, worst first: same code, severity, confidence, fact, cause and steps."""
    groups: dict[object, list[Finding]] = {}
    for one in sorted(findings, key=_rank):
        fact = _fact(one) if one.fact else one.code
        key = (one.code, one.severity, one.confidence, one.silenced, one.cause, one.unit, one.kind, _masked(one), fact)
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _rank(finding: Finding) -> tuple[bool, int, int]:
    return bool(finding.silenced), SEVERITIES.index(finding.severity), _CONFIDENCES.index(finding.confidence)


def _masked(finding: Finding) -> tuple[str, ...]:
    """The steps without the names of the device, which equal findings do not share."""
    return tuple(_without_names(step, finding) for step in finding.steps or (finding.remedy or "",))


def _without_names(text: str, finding: Finding) -> str:
    names = [finding.subject, finding.subject.partition("/")[0], safe(finding.subject_name or ""), _name(finding)]
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", "*", text) if pattern else text


def summary(group: Group, paint: Paint) -> Iterator[str]:
    """One line for equal findings: severity, device with its place, fact, first step."""
    first = group[0]
    title = f"{first.severity.upper():<8}"
    fact = _fact(first)
    if len(group) == 1:
        text = about(safe(first.device or first.subject), fact)
    else:
        text = _together(list(dict.fromkeys(map(_name, group))), group, fact)
    text += f": {safe(first.first_step)}" if first.first_step else ""
    text += "" if first.confidence == "certain" else f" ({first.confidence})"
    text += f" [{safe(first.code)}]" if first.severity == "info" else ""  # an info has no block with its code
    head, *others = hanging(f"{title} ", text, WIDTH)
    yield head.replace(title.rstrip(), paint(title.rstrip(), first.severity), 1)
    yield from others


def _together(names: list[str], group: Group, fact: str) -> str:
    if len(names) < len(group):  # devices without a name of their own
        names = [safe(one.subject) for one in group]
    text = about("each", fact)
    return f"{listed(names, _MOST_NAMES)}: {text if text.startswith('each ') else fact}"


def _fact(finding: Finding) -> str:
    return safe(finding.fact or finding.message)


def _name(finding: Finding) -> str:
    """The short name of the device: "gpu1"."""
    return safe((finding.device or finding.subject).partition(" (")[0])


def has_block(group: Group, detail: Detail) -> bool:
    """Whether the group has a block with details. An info needs none: its line has everything.

    Of "not-enough-evidence" the details say what to collect.
    """
    first = group[0]
    is_info = first.severity == "info" and not first.silenced and first.code != NOT_ENOUGH_EVIDENCE
    return detail is Detail.ALL or (detail is not Detail.NONE and not is_info)


def block(group: Group, paint: Paint, detail: Detail) -> Iterator[str]:
    """The details of equal findings in at most so many lines."""
    first = group[0]
    silenced = bool(first.silenced)
    title = "SILENCED" if silenced else first.severity.upper()
    title += "" if first.confidence == "certain" else f" ({first.confidence})"
    names = listed([_name(one) for one in group], 4) if len(group) > 1 else safe(first.device or first.subject)
    head, *others = hanging(f"{title}  ", f"{safe(first.code)}  {names}", WIDTH, indent=4)
    yield head.replace(title, paint(title, "dim" if silenced else first.severity), 1)
    yield from others
    lines = list(_messages(group, detail))
    yield from lines
    room = detail.value - 1 - len(others) - len(lines)
    rows: tuple[tuple[str, Getter], ...] = (("reason", lambda one: [one.silenced or ""]),) if silenced else _ROWS
    yield from _fitting(rows, group, paint, room if detail is not Detail.ALL else None)


def _messages(group: Group, detail: Detail) -> Iterator[str]:
    """The messages of a group. Messages that differ only in the names of the device are printed once."""
    by_message: dict[str, list[Finding]] = {}
    for one in group:
        text = safe(one.message)
        by_message.setdefault(text if detail is Detail.ALL else _without_names(text, one), []).append(one)
    most = len(by_message) if detail is Detail.ALL or len(by_message) == 1 else 2
    for alike in list(by_message.values())[:most]:
        text = safe(alike[0].message)
        if len(group) > 1 and text == _without_names(text, alike[0]):
            text = f"{listed([_name(one) for one in alike], _MOST_NAMES)}: {text}"
        elif len(alike) > 1:
            text += "; the same for the others"
        yield from hanging("  ", text, WIDTH, indent=2 if len(group) == 1 else 4)
    if len(by_message) > most:
        yield f"  and {len(by_message) - most} more, all with -v"


def _fitting(rows: Sequence[tuple[str, Getter]], group: Group, paint: Paint, room: int | None) -> Iterator[str]:
    """The rows that fit into so many lines. The steps have the best claim to room."""
    texts = {label: _texts(label, group, get) for label, get in rows}
    made = {label: list(_labelled(label, several, paint)) for label, several in texts.items()}
    if room is not None:
        if len(made.get("do", ())) > max(3, room - 2):
            made["do"] = _first_steps(group, max(3, room - 2), paint)
        for label in _LEAST:
            if label in made and sum(map(len, made.values())) > room:
                made[label] = list(_labelled(label, texts[label][:1], paint)) if label == "seen" else []
        for label in ("seen", "where", "cause"):
            if label in made and sum(map(len, made.values())) > room:
                made[label] = []
    for lines in made.values():
        yield from lines


_LEAST = ("explains", "since", "source", "seen", "cost", "expected")


def _first_steps(group: Group, most: int, paint: Paint) -> list[str]:
    """As many of the steps as fit into so many lines, and where the others are."""
    steps = _steps(group[0])
    code = group[0].code
    usual = code in codes() and not any(step.do == group[0].remedy for step in codes()[code].fix)
    for count in range(len(steps), 0, -1):
        others = [f"further steps: {f'linkgauge explain {safe(code)}' if usual else '-v'}"] * (count < len(steps))
        lines = list(_labelled("do", [*steps[:count], *others], paint))
        if len(lines) <= most or count == 1:
            return lines
    return []


def _texts(label: str, group: Group, get: Getter) -> list[str]:
    """The texts of one label: once if all findings of the group agree, else one text with all subjects."""
    most = _LONGEST if label == "seen" else None
    values = [(_name(one), [short(text, most) for text in get(one)]) for one in group]
    texts = values[0][1]
    if label == "do" and len(group) > 1 and any(others != texts for _, others in values):
        texts = [
            f"{text} The same for the others." if _differs(group, index) else text for index, text in enumerate(texts)
        ]
    elif any(others != texts for _, others in values):
        pairs = [f"{name} {', '.join(few[:1])}" for name, few in values if few]
        texts = [listed(pairs, 2 if label == "seen" else _MOST_NAMES, "; ")]
    if label == "where" and len(group) == 1 and all(text in safe(group[0].device or "") for text in texts):
        return []  # the title has it
    return texts


def _differs(group: Group, index: int) -> bool:
    steps = {one.steps[index] if index < len(one.steps) else "" for one in group}
    return len(steps) > 1


def _labelled(label: str, texts: Sequence[str], paint: Paint) -> Iterator[str]:
    for index, text in enumerate(texts):
        first = f"  {'' if index else label:<10}"
        lines = list(hanging(first, text, WIDTH))
        yield f"{paint(first, 'dim')}{lines[0][len(first) :]}" if index == 0 else lines[0]
        yield from lines[1:]


def _steps(finding: Finding) -> list[str]:
    steps = [safe(step) for step in finding.steps or filter(None, (finding.remedy,))]
    return [f"{number}. {step}" for number, step in enumerate(steps, 1)] if len(steps) > 1 else steps


def _expected(finding: Finding) -> Iterable[str]:
    if finding.expected_source is None or not _compares(finding) or finding.expected_source in finding.message:
        return []
    number = quantity(finding.expected, finding.unit)
    basis = f" ({basis_in_words(finding.basis)})" if finding.basis else ""
    return [f"{number + ': ' if number else ''}{finding.expected_source}{basis}"]


def _source(finding: Finding) -> Iterable[str]:
    """The source that defines the meaning of a log line."""
    return [finding.expected_source] if finding.expected_source and not _compares(finding) else []


def _compares(finding: Finding) -> bool:
    return finding.expected is not None or finding.basis is not None


def _seen(finding: Finding) -> list[str]:
    """The evidence, each text once."""
    texts = list(dict.fromkeys(map(seen, finding.evidence)))
    more = len(texts) - _MOST_EVIDENCE
    return texts if more <= 1 else [*texts[:_MOST_EVIDENCE], f"and {more} more, all in --format json"]


def _cause(finding: Finding) -> list[str]:
    return [finding.cause] if finding.cause and finding.cause not in finding.message else []


def _explains(finding: Finding) -> list[str]:
    return [listed([one.replace(":", " of ", 1) for one in finding.explains], 4)] if finding.explains else []


def _where(finding: Finding) -> list[str]:
    """The place. JSON and tickets also have the port above a device without a slot."""
    words = place_in_words({name: value for name, value in finding.location.items() if name != "port_above"})
    return [", ".join(words)] if words else []


_ROWS: tuple[tuple[str, Getter], ...] = (
    ("cause", _cause),
    ("expected", _expected),
    ("source", _source),
    ("seen", _seen),
    ("explains", _explains),
    ("cost", cost_lines),
    ("where", _where),
    ("stale", lambda finding: [finding.stale] if finding.stale else []),
    ("since", lambda finding: [finding.since] if finding.since else []),
    ("do", _steps),
)
