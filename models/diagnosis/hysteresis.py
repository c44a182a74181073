"""Hysteresis: the service reports settled findings. States settle over cycles, events stay, measurements pass
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..catalog import codes
from ..facts.records import Evidence
from ..facts.units import as_utc, from_utc
from ..report import COSTS, SEVERITIES, Finding, Report, Verdict, worst_cost
from .verdict import verdict

_WINDOW, _ENOUGH = 3, 2  # cycles
_HOUR, _DAY = 3600.0, 86400.0
_FLAPS = 3  # appearances within an hour; a restart of a driver or a switch causes one or two


class History(Struct, frozen=True):
    """The history of the findings under one key. Times are report times in seconds since 1970."""

    findings: tuple[Finding, ...]  # from the latest report; for an event the most severe so far
    seen: tuple[bool, ...]  # present or absent in each of the last cycles
    shown: bool
    first: float  # first appearance
    last: float  # latest appearance
    times: int = 1  # number of appearances since `first`
    came: tuple[float, ...] = ()  # times of the appearances in the last hour
    gone: bool = False  # absent in a later check
    obstacles: tuple[str, ...] = ()  # what the rules of this code could not evaluate at the latest appearance
    unreported: tuple[str, ...] = ()  # states that no source reported at the latest appearance
    stale: str | None = None  # why it could not be evaluated since


Key: TypeAlias = tuple[str, str, str]  # code, subject, kind: a rising counter and an error may share a code
Histories: TypeAlias = Mapping[Key, History]
Obstacles: TypeAlias = Callable[[Finding], Collection[str]]  # as reevaluation.obstacles


def settle(
    histories: Histories,
    report: Report,
    accepted: float | None = None,
    booted: float | None = None,
    obstacles: Obstacles | None = None,
    first: bool = False,
    unreported: Obstacles = lambda finding: (),
) -> tuple[Histories, Report]:
    """Fold one report into the history; `accepted` is when an operator marked the node as good, `booted` its boot.

    A state is shown after it is present in two of three cycles. The first report of a service (`first`) shows states
    that are certain at once, since nothing else is known. A state disappears after it is absent in two of three, unless
    it was present in between. A state that flaps stays one finding with the number of appearances. An event is shown
    at once. It stays until a report marks it as history, for one day after its latest appearance, or until the node is
    accepted or booted again. Measurements are confirmed before and pass unchanged, as does the rest of the report.

    A state or a measurement that is absent and could not be evaluated stays, and it is stale. `obstacles` returns why a
    finding could not be evaluated, `unreported` the states that no source reports. The verdict is computed from the
    shown findings. In the first report it is not `ok` if a state is not shown yet.
    """
    at, fresh, evidence = _time_of(histories, report), _by_key(report.findings), _evidence(report.findings)
    updated: dict[Key, History] = {}
    for key in sorted({*fresh, *histories}):
        current = fresh.get(key, ())
        before = _in_force(histories.get(key), bool(current), at, accepted, booted)
        if before is None and not current:
            continue
        if key[2] == "event":
            history = _event(before, current, at, evidence)
        else:
            doubts = _doubts(report, obstacles, unreported, before, current)
            history = _evaluated(before, current, at, first, *doubts)
        if history is not None:
            updated[key] = history
    shown = replace(report, findings=tuple(sorted(_shown(updated, fresh), key=_rank)))
    waits = first and not all(_is_shown(updated[key]) for key in fresh)
    cost = min(report.cost, worst_cost(shown.findings), key=COSTS.index)
    return updated, replace(shown, verdict=_settled(shown, waits), cost=cost)


def _settled(shown: Report, waits: bool) -> Verdict:
    """The verdict from the shown findings: at best unknown while a state `waits` for its second cycle."""
    settled = verdict(shown.findings, shown.checks, shown.source, shown.runs, shown.not_checked)
    return "unknown" if waits and settled in ("ok", "degraded") else settled


def until(history: History, at: float) -> History:
    """The history without times after `at`: a clock that was set back changes times, and repairs nothing."""
    came = tuple(then for then in history.came if then <= at)
    return replace(history, first=min(history.first, at), last=min(history.last, at), came=came)


def _evaluated(
    before: History | None,
    current: tuple[Finding, ...],
    at: float,
    first: bool,
    obstacles: tuple[str, ...],
    unreported: tuple[str, ...],
) -> History | None:
    """The history of a state or a measurement."""
    if before is not None and not current:
        why = _new(obstacles, before.obstacles) or _new(unreported, before.unreported)
        if why:
            return _held(before, at, why)
    measurement = (current or (before.findings if before else ()))[0].kind == "measurement"
    history = _measurement(before, current, at) if measurement else _state(before, current, at, first)
    if history is None or current or not before:
        return history and replace(history, obstacles=obstacles, unreported=unreported)
    return replace(history, obstacles=before.obstacles, unreported=before.unreported)


def restarted(histories: Histories, rebooted: bool) -> Histories:
    """The histories at the start of a service: all findings are stale until they are evaluated again.

    `rebooted`: the machine has booted since. Earlier events are then history, and the first check that does not find a
    state clears it.
    """
    return {key: _restarted(history, rebooted) for key, history in histories.items()}


def _restarted(history: History, rebooted: bool) -> History:
    why = f"last seen {as_utc(history.last)}, before {'the machine booted' if rebooted else 'the service started'}"
    if not rebooted:
        return replace(history, stale=why)
    if history.findings[0].kind != "event":
        return replace(history, stale=why, seen=(), came=(), obstacles=())
    past = tuple(
        finding
        if finding.severity == "info"
        else replace(finding, severity="info", message=f"{finding.message}; before the last boot")
        for finding in history.findings
    )
    return replace(history, findings=past, stale=None)


def stale_findings(histories: Histories) -> tuple[Finding, ...]:
    """The shown findings of a service that has not completed a cycle."""
    return tuple(sorted(_shown(histories, ()), key=_rank))


def _doubts(
    report: Report,
    obstacles: Obstacles | None,
    unreported: Obstacles,
    before: History | None,
    current: tuple[Finding, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the rules could not evaluate (without a function: whether the code was checked), and unreported states."""
    finding = (current or (before.findings if before else ()))[0]
    if obstacles is not None:
        return tuple(obstacles(finding)), tuple(unreported(finding))
    checked = current or report.checks.get(finding.code) is not False
    return () if checked else ("some checks were not possible",), tuple(unreported(finding))


def _new(obstacles: Collection[str], before: Collection[str]) -> str | None:
    """The first obstacle that did not exist when the finding appeared last."""
    return next((why for why in obstacles if why not in before), None)


def _held(before: History, at: float, why: str) -> History | None:
    """A finding that could not be evaluated. A finding that was not shown yet is forgotten after an hour."""
    if before.shown and before.findings[0].severity != "info":
        return replace(before, stale=why)
    return before if at - before.last <= _HOUR else None


def _is_shown(history: History) -> bool:
    return history.shown or all(finding.severity == "info" or finding.silenced for finding in history.findings)


def _time_of(histories: Histories, report: Report) -> float:
    """The time of the report. Without one: the latest known time."""
    if report.taken_at is not None:
        return from_utc(report.taken_at)
    return max((history.last for history in histories.values()), default=0.0)


def _by_key(findings: Iterable[Finding]) -> dict[Key, tuple[Finding, ...]]:
    groups: dict[Key, tuple[Finding, ...]] = {}
    for finding in sorted(findings, key=_rank):
        key = finding.code, finding.subject, finding.kind
        groups[key] = (*groups.get(key, ()), finding)
    return groups


def _in_force(
    before: History | None, still: bool, at: float, accepted: float | None, booted: float | None
) -> History | None:
    """The history that an acceptance and a boot leave, without times after `at`."""
    return _of_this_boot(_without_accepted(before and until(before, at), still, accepted), booted)


def _without_accepted(before: History | None, still: bool, accepted: float | None) -> History | None:
    """The history after an acceptance: older entries are dropped, and a state that is still present starts a new
    history.
    """
    if before is None or accepted is None or before.last > accepted:
        return before
    if not still or before.findings[0].kind == "event":
        return None
    return replace(before, times=0, came=(), gone=True)  # its next appearance counts as the first


def _of_this_boot(before: History | None, booted: float | None) -> History | None:
    """The history without events that were last seen before the node was booted. States are evaluated again."""
    if before is None or booted is None or before.last >= booted or before.findings[0].kind != "event":
        return before
    return None


def _state(before: History | None, current: tuple[Finding, ...], at: float, first: bool) -> History | None:
    """The two-of-three rule. A state with several appearances within the hour is shown until the hour has passed."""
    seen = (*(before.seen if before else ()), bool(current))[-_WINDOW:]
    comes = bool(current) and (before is None or before.gone)
    came = tuple(then for then in (*(before.came if before else ()), *([at] if comes else [])) if then > at - _HOUR)
    findings = current or (before.findings if before else ())
    certain = first and any(finding.confidence == "certain" for finding in current)
    at_once = certain or (bool(current) and not codes()[findings[0].code].steady)
    stays = before is not None and before.shown and True in seen[-_ENOUGH:]  # it may have been present in between
    shown = at_once or stays or seen.count(True) >= _ENOUGH or len(came) >= _FLAPS
    last = at if current or before is None else before.last
    if not (shown or any(seen) or at - last <= _HOUR):
        return None
    return History(
        findings=findings,
        seen=seen,
        shown=shown,
        first=before.first if before and before.times else at,
        last=last,
        times=(before.times if before else 0) + comes,
        came=came,
        gone=not current,
    )


def _event(
    before: History | None, current: tuple[Finding, ...], at: float, evidence: frozenset[Evidence]
) -> History | None:
    """Shown at once, until it is history. A rotated log or a counter that no longer rises clears nothing."""
    latched = before if before is not None and _is_active(before.findings) else None
    if not current:
        return replace(latched, stale=None) if latched and at - latched.last <= _DAY else None
    first = before.first if before else at
    milder = latched is not None and _is_active(current) and _gravity(current) > _gravity(latched.findings)
    if latched and milder and not _evidence(latched.findings) <= evidence:
        return replace(latched, last=at, stale=None)  # the rules no longer see the cause of the more severe finding
    return History(current, (True,), True, first, at)


def _measurement(before: History | None, current: tuple[Finding, ...], at: float) -> History | None:
    return History(current, (True,), True, before.first if before else at, at) if current else None


def _shown(updated: Histories, fresh: Collection[Key]) -> Iterable[Finding]:
    """All findings to show. An event is left out if the evidence of a state contains all its evidence.

    If both are in the current report, both are shown: the rules decide about that.
    """
    evidence: dict[Key, frozenset[Evidence]] = {
        key: _evidence(history.findings) for key, history in updated.items() if history.shown and key[2] != "event"
    }
    for key, history in updated.items():
        lines = _evidence(history.findings)
        cited = any(lines <= others and not (key in fresh and by in fresh) for by, others in evidence.items())
        if history.shown and not (key[2] == "event" and lines and cited):
            yield from (_dated(finding, history) for finding in history.findings)


def _dated(finding: Finding, history: History) -> Finding:
    """The finding with the time of its first appearance and the number of appearances."""
    since = as_utc(history.first)
    again = f"; came and went {history.times} times since {since}" if history.times > 1 else ""
    return replace(finding, message=finding.message + again, since=finding.since or since, stale=history.stale)


def _is_active(findings: Sequence[Finding]) -> bool:
    """Whether a finding is more than history."""
    return any(finding.severity != "info" for finding in findings)


def _gravity(findings: Sequence[Finding]) -> int:
    return min(SEVERITIES.index(finding.severity) for finding in findings)


def _evidence(findings: Iterable[Finding]) -> frozenset[Evidence]:
    return frozenset(line for finding in findings for line in finding.evidence)


def _rank(finding: Finding) -> tuple[bool, int, str, str, str]:
    """The sort key of a report. It does not depend on the order of input."""
    return bool(finding.silenced), SEVERITIES.index(finding.severity), finding.code, finding.subject, repr(finding)
