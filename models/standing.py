"""Hysteresis: what a daemon shows is steadier than what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from .catalog import codes
from .report import Finding, Report
from .verdict import verdict

_WINDOW, _ENOUGH = 3, 2


@dataclass(frozen=True, slots=True)
class Sighting:
    """A finding, in which of the last cycles it was seen, and whether it is shown."""

    finding: Finding
    seen: tuple[bool, ...]
    shown: bool


Standing: TypeAlias = Mapping[tuple[str, str], Sighting]  # by code and subject


def settle(standing: Standing, report: Report) -> tuple[Standing, Report]:
    """A fold over reports: a state appears once seen in two of three cycles and goes once missed in two of three.

    An event appears at once. Observations and what was not checked pass untouched; the verdict is that of what is
    shown.
    """
    fresh = {(finding.code, finding.subject): finding for finding in report.findings}
    kept: dict[tuple[str, str], Sighting] = {}
    for key in dict.fromkeys((*fresh, *standing)):
        sighting = _next(standing.get(key), fresh.get(key))
        if any(sighting.seen):
            kept[key] = sighting
    shown = tuple(sighting.finding for sighting in kept.values() if sighting.shown)
    return kept, replace(report, findings=shown, verdict=verdict(shown, report.checks, report.source))


def _next(before: Sighting | None, finding: Finding | None) -> Sighting:
    seen = ((before.seen if before else ()) + (finding is not None,))[-_WINDOW:]
    current = finding or (before.finding if before else None)
    assert current
    if finding and not codes()[finding.code].steady:
        return Sighting(current, seen, True)
    was = before is not None and before.shown
    stays = was and seen.count(False) < _ENOUGH
    return Sighting(current, seen, seen.count(True) >= _ENOUGH or stays)
