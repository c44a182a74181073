"""The table [ignore] of the site file and the option --ignore: which finding each entry matches.

An entry is "CODE" or "CODE:SUBJECT". SUBJECT is any name of a device (models/inventory/name_resolver.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..inventory.name_resolver import names_of, unknown
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import Finding

NODE = "node"
UNUSED = 30 * 86400.0  # seconds without a match after which the service reports an entry


def silenced(snapshot: Snapshot, finding: Finding) -> str | None:
    """The operator's reason to ignore the finding, by code and subject or by code alone."""
    if not snapshot.site.ignore:
        return None
    matching = [entry for entry in snapshot.site.ignore if _matches(snapshot, entry, finding)]
    # An entry with a subject comes before one without.
    entry = max(matching, key=lambda one: ":" in one, default=None)
    return None if entry is None else snapshot.site.ignore[entry]


def matched(snapshot: Snapshot, findings: Iterable[Finding]) -> frozenset[str]:
    """The entries that match at least one of the findings."""
    found = tuple(findings)
    return frozenset(
        entry for entry in snapshot.site.ignore if any(_matches(snapshot, entry, finding) for finding in found)
    )


def unmatched(snapshot: Snapshot, findings: Iterable[Finding]) -> Mapping[str, str]:
    """The entries that match none of the findings, and why."""
    used = matched(snapshot, findings)
    return {entry: _why(snapshot, entry) for entry in snapshot.site.ignore if entry not in used}


def last_matched(before: Mapping[str, float], snapshot: Snapshot, findings: Iterable[Finding]) -> Mapping[str, float]:
    """When each entry matched a finding last, else when it was first seen, in seconds since 1970."""
    if not snapshot.site.ignore:
        return {}
    used = matched(snapshot, findings)
    return {entry: snapshot.now if entry in used else before.get(entry, snapshot.now) for entry in snapshot.site.ignore}


def unused(last: Mapping[str, float], now: float) -> tuple[str, ...]:
    """The entries that matched no finding for 30 days."""
    return tuple(entry for entry, at in last.items() if now - at >= UNUSED)


def _why(snapshot: Snapshot, entry: str) -> str:
    code, _, subject = entry.partition(":")
    if subject and not _names(snapshot)[entry]:
        return unknown(snapshot, subject)
    return f"no finding {code} is about {subject}" if subject else f"there is no finding {code}"


def _matches(snapshot: Snapshot, entry: str, finding: Finding) -> bool:
    code, _, subject = entry.partition(":")
    return code == finding.code and (
        not subject or finding.subject == subject or finding.subject in _names(snapshot)[entry]
    )


@once_per_snapshot
def _names(snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """The names of the device of each entry that has a subject."""
    subjects = {entry: entry.partition(":")[2] for entry in snapshot.site.ignore}
    return {
        entry: frozenset({subject}) if subject == NODE else names_of(snapshot, subject)
        for entry, subject in subjects.items()
        if subject
    }
