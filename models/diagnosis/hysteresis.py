"""What a daemon shows is steadier than what it sees: states settle, events stay, measurements pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..catalog import codes
from ..facts.records import Evidence
from ..facts.units import as_utc, from_utc
from ..report import SEVERITIES, Finding, Report
from .verdict import verdict

_WINDOW, _ENOUGH = 3, 2  # cycles
_HOUR, _DAY = 3600.0, 86400.0
_FLAPS = 3  # comings within an hour: a restart of a driver or a switch takes one or two (rules/device_events.py)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was told under one key, and when. Times are those of reports, in seconds since 1970."""

    findings: tuple[Finding, ...]  # as they were told last; of an event, the gravest that was told
    seen: tuple[bool, ...]  # in which of the last cycles
    shown: bool
    first: float  # when it first came
    last: float  # when it was told last
    times: int = 1  # how often it came since then
    came: tuple[float, ...] = ()  # when, within the last hour
    gone: bool = False  # it was looked for since, and not found


Key: TypeAlias = tuple[str, str, str]  # code, subject, kind: a count that rises and an error may have a code in common
Standing: TypeAlias = Mapping[Key, Sighting]


def settle(standing: Standing, report: Report, accepted: float | None = None) -> tuple[Standing, Report]:
    """A fold over reports; `accepted` is when the node was marked as good.

    A state appears once seen in two of three cycles and goes once missed in two of three, unless it came in between:
    what comes and goes stays one finding, which says so. An event appears at once, and stays until a report tells it as
    history, for a day since it was told last, or until the node is accepted. Measurements were confirmed before, and
    pass. So do observations and what was not checked; the verdict is that of what is shown.
    """
    at = _moment(standing, report)
    fresh = _by_key(report.findings)
    told = _evidence(report.findings)
    kept: dict[Key, Sighting] = {}
    for key in sorted({*fresh, *standing}):
        before = _since_accepted(standing.get(key), key in fresh, accepted)
        now = fresh.get(key, ())
        missed = report.checks.get(key[0]) is not False  # what could not be judged has not gone
        if key[2] == "event":
            sighting = _event(before, now, at, told)
        elif key[2] == "measurement":
            sighting = _measurement(before, now, at)
        else:
            sighting = _state(before, now, at, missed)
        if sighting is not None:
            kept[key] = sighting
    shown = tuple(sorted(_shown(kept, fresh), key=_rank))
    return kept, replace(report, findings=shown, verdict=verdict(shown, report.checks, report.source, report.runs))


def _moment(standing: Standing, report: Report) -> float:
    """When the report was taken; where it does not say, no time has passed."""
    if report.taken_at is not None:
        return from_utc(report.taken_at)
    return max((sighting.last for sighting in standing.values()), default=0.0)


def _by_key(findings: Iterable[Finding]) -> dict[Key, tuple[Finding, ...]]:
    groups: dict[Key, tuple[Finding, ...]] = {}
    for finding in sorted(findings, key=_rank):
        key = finding.code, finding.subject, finding.kind
        groups[key] = (*groups.get(key, ()), finding)
    return groups


def _since_accepted(before: Sighting | None, still: bool, accepted: float | None) -> Sighting | None:
    """Nothing of what was told before somebody said that the node is good, but for states that are there still."""
    if before is None or accepted is None or before.last > accepted:
        return before
    if not still or before.findings[0].kind == "event":
        return None
    return replace(before, times=0, came=(), gone=True)  # it comes for the first time


def _state(before: Sighting | None, now: tuple[Finding, ...], at: float, missed: bool) -> Sighting | None:
    """Two of three; and what came several times within the hour is shown until it has stayed away."""
    seen = (*(before.seen if before else ()), bool(now))[-_WINDOW:]
    comes = bool(now) and (before is None or before.gone)
    came = tuple(then for then in (*(before.came if before else ()), *([at] if comes else [])) if then > at - _HOUR)
    findings = now or (before.findings if before else ())
    at_once = bool(now) and not codes()[findings[0].code].steady
    stays = before is not None and before.shown and True in seen[-_ENOUGH:]  # it may have come in between
    shown = at_once or stays or seen.count(True) >= _ENOUGH or len(came) >= _FLAPS
    last = at if now or before is None else before.last
    if not (shown or any(seen) or at - last <= _HOUR):
        return None
    return Sighting(
        findings=findings,
        seen=seen,
        shown=shown,
        first=before.first if before and before.times else at,
        last=last,
        times=(before.times if before else 0) + comes,
        came=came,
        gone=not now and (missed or (before is not None and before.gone)),
    )


def _event(before: Sighting | None, now: tuple[Finding, ...], at: float, told: frozenset[Evidence]) -> Sighting | None:
    """At once, and until it is history. A log that was rotated away, a counter that rises no more clear nothing."""
    latched = before if before is not None and _grave(before.findings) else None
    if not now:
        return latched if latched and at - latched.last <= _DAY else None
    first = before.first if before else at
    milder = latched is not None and _grave(now) and _gravity(now) > _gravity(latched.findings)
    if latched and milder and not _evidence(latched.findings) <= told:
        return replace(latched, last=at)  # the rules do not know any more what led to the graver one
    return Sighting(now, (True,), True, first, at)


def _measurement(before: Sighting | None, now: tuple[Finding, ...], at: float) -> Sighting | None:
    return Sighting(now, (True,), True, before.first if before else at, at) if now else None


def _shown(kept: Standing, fresh: Collection[Key]) -> Iterable[Finding]:
    """The findings of all that is shown. An event that led to a state which cites it is told there alone.

    Whether both are told that are in one report is for the rules to say.
    """
    told: dict[Key, frozenset[Evidence]] = {
        key: _evidence(sighting.findings) for key, sighting in kept.items() if sighting.shown and key[2] != "event"
    }
    for key, sighting in kept.items():
        lines = _evidence(sighting.findings)
        cited = any(lines <= others and not (key in fresh and by in fresh) for by, others in told.items())
        if sighting.shown and not (key[2] == "event" and lines and cited):
            yield from (_dated(finding, sighting) for finding in sighting.findings)


def _dated(finding: Finding, sighting: Sighting) -> Finding:
    """The finding with when it came first, and how often it came since."""
    since = as_utc(sighting.first)
    again = f"; came and went {sighting.times} times since {since}" if sighting.times > 1 else ""
    return replace(finding, message=finding.message + again, since=finding.since or since)


def _grave(findings: Sequence[Finding]) -> bool:
    """Not history alone."""
    return any(finding.severity != "info" for finding in findings)


def _gravity(findings: Sequence[Finding]) -> int:
    return min(SEVERITIES.index(finding.severity) for finding in findings)


def _evidence(findings: Iterable[Finding]) -> frozenset[Evidence]:
    return frozenset(line for finding in findings for line in finding.evidence)


def _rank(finding: Finding) -> tuple[bool, int, str, str, str]:
    """The order of a report, and one that does not hang on the order in which findings came."""
    return bool(finding.silenced), SEVERITIES.index(finding.severity), finding.code, finding.subject, repr(finding)
