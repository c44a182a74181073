"""Group equal NotChecked records, so that eight of a kind are one entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from .terminal import safe
from .vocabulary import in_words, listed

_MOST_SUBJECTS = 16
_FIELD = re.compile(r"[A-Za-z]\w*\.\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Gap:
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


def _subjects(alike: Sequence[NotChecked]) -> Iterator[str]:
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
        yield in_words(kind, of_them if has_fields else (), listed(names, _MOST_SUBJECTS), whole)
