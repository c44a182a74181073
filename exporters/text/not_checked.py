"""Group equal NotChecked records, so that eight of a kind are one entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.rules.host.job_limits import NOT_A_JOB
from .terminal import fitted, limited, safe
from .vocabulary import in_words, listed

_MOST_SUBJECTS = 16
_FEW = 2  # subjects in one line
_FIELD = re.compile(r"[A-Za-z]\w*\.\w+", re.ASCII)


_WORDS = {
    Reason.FAULT: "a bug in linkgauge",
    Reason.STOPPED: "the service completes no cycles",
    Reason.NOT_MEASURED: "not measured",
    Reason.AT_REST: "at rest",
    Reason.OTHER_CONTEXT: "belongs to others",
    Reason.NO_EXPECTATION: "no expected value is known",
    Reason.HIDDEN: "hidden by a hypervisor or container",
    Reason.PERMISSION: "no permission",
    Reason.NO_ANSWER: "no answer in time",
    Reason.LOST: "the device does not answer",
    Reason.NOT_INSTALLED: "not there",
    Reason.DRIVER: "the driver gave an error",
    Reason.NOT_SUPPORTED: "not supported",
    Reason.UNREADABLE: "unreadable",
    Reason.EXHAUSTED: "no free file descriptor",
    Reason.INCOMPLETE: "the input is incomplete",
    Reason.CONTRADICTED: "two sources disagree",
    Reason.OTHER: "other reasons",
}


class Gap(Struct, frozen=True):
    """Records with the same reason, as text."""

    what: str  # "link width of 0000:53:00.0, 0000:54:00.0"
    why: str
    how: str | None


def gaps(not_checked: Iterable[NotChecked]) -> Iterator[Gap]:
    """One gap per reason and remedy. If several files have the same error, the first one is named."""
    groups: dict[tuple[Reason, str, str | None], list[tuple[NotChecked, str]]] = {}
    for one in not_checked:
        file = one.path if one.path and "/" in one.path else ""  # a line of a dump stays part of the reason
        detail = one.detail if file else one.why
        groups.setdefault((one.reason, detail, one.how), []).append((one, file))
    for (_, detail, how), alike in groups.items():
        paths = list(dict.fromkeys(path for _, path in alike if path))
        why = f"{paths[0]}: {detail}" if len(paths) == 1 else detail
        if len(paths) > 1:
            why += f" ({listed(paths, 1)})"
        yield Gap("; ".join(_subjects([one for one, _ in alike])), safe(why), safe(how) if how else None)


def without_job_limits(not_checked: Iterable[NotChecked]) -> list[NotChecked]:
    """The records without that of the limits of a job, which every report of a node has."""
    return [one for one in not_checked if one != NOT_A_JOB]


def lines_by_reason(not_checked: Iterable[NotChecked], width: int) -> Iterator[str]:
    """One line per reason: "no permission (run as root): link speed of 0000:53:00.0 and 7 more"."""
    reasons: dict[Reason, list[NotChecked]] = {}
    for one in not_checked:
        reasons.setdefault(one.reason, []).append(one)
    for reason, alike in reasons.items():
        found = list(gaps(alike))
        hows = list(dict.fromkeys(gap.how for gap in found if gap.how))
        how = f" ({hows[0]})" if len(hows) == 1 else " (see -v)" if hows else ""
        what = "; ".join(_subjects(alike, _FEW))
        text = f"{what}: {found[0].why}{how}" if len(found) == 1 else f"{_WORDS[reason]}{how}: {what}"
        yield f"  {fitted(text, limited(width) - 2)}"


def _subjects(alike: Sequence[NotChecked], most: int = _MOST_SUBJECTS) -> Iterator[str]:
    """ "link speed, link width of 0000:53:00.0, 0000:54:00.0": group the fields that have the same subjects."""
    subjects: dict[str, dict[str, None]] = {}
    for one in alike:
        subjects.setdefault(one.what, {})[one.subject] = None
    fields: dict[tuple[str, bool, tuple[str, ...]], list[str]] = {}
    for what, those in subjects.items():
        kind, _, field = what.partition(".") if _FIELD.fullmatch(what) else (what, "", "")
        names = tuple(safe(name) for name in those)
        fields.setdefault((safe(kind), bool(field), names), []).append(field)
    for (kind, has_fields, names), of_them in fields.items():
        whole = names == ("node",)
        yield in_words(kind, of_them if has_fields else (), listed(names, most), whole)
