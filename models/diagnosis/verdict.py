"""The verdict of a report in one word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..catalog import NOT_ENOUGH_EVIDENCE, codes
from ..facts.reason import Reason
from ..facts.records import NotChecked, Run
from ..facts.registry import kind_name
from ..facts.states import STATES
from ..report import UNEXPLAINED, Finding, Origin, Report, Verdict

_DOUBT = "This node is not known to be healthy"
_HOST = ("cpu-", "numa-", "host-memory")  # beginnings of codes about processors and memory
_UNSURE = (Reason.INCOMPLETE, Reason.CONTRADICTED)
_STATED = frozenset(f"{kind_name(kind)}.{field}" for kind, fields in STATES.items() for field in fields)


def verdict(
    found: Iterable[Finding],
    checks: Mapping[str, bool],
    origin: Origin,
    runs: Iterable[Run] = (),
    unread: Iterable[NotChecked] = (),
) -> Verdict:
    """Order: failed > unknown > degraded > ok. Info findings and ignored findings do not count.

    unknown: a vital check was wanted but not possible; a source failed by its own fault, so its result is missing (not
    for dumps); a symptom was seen but not its cause; a finding is stale; or nothing could be checked. Instead of ok,
    also: a part of the input was not read, two sources disagree on a state, a text has the state of a device in words
    that are not understood, or a driver reports an unknown fault.
    A recorded machine that shows only processors gives `unknown`. `measurement-invalid` does not count as a check. A
    check or a log line that can only give information is no evidence that faults are absent.
    """
    counting = [one for one in found if not one.silenced and one.code != "measurement-invalid"]
    active = [one for one in counting if one.stale is None]
    stale = any(one.severity != "info" for one in counting if one.stale is not None)
    grave = {one.severity for one in active}
    if "critical" in grave:
        return "failed"
    vital = any(not evaluated and codes()[code].vital for code, evaluated in checks.items())
    blind = origin != "dumps" and (vital or not all(run.ok for run in runs))
    symptom = any(one.code == NOT_ENOUGH_EVIDENCE and not _has_cause(one, active) for one in active)
    checked = any(evaluated and set(codes()[code].severity) != {"info"} for code, evaluated in checks.items())
    if blind or stale or symptom or not (checked or "warning" in grave) or _is_host_alone(checks, origin, active):
        return "unknown"
    if "warning" in grave:
        return "degraded"
    unexplained = any(one.case == UNEXPLAINED for one in active)
    return "unknown" if unexplained or any(_is_unsure(one, origin) for one in unread) else "ok"


def _is_unsure(gap: NotChecked, origin: Origin) -> bool:
    """Whether what was not checked prevents ok."""
    return gap.reason in _UNSURE or _is_strange(gap, origin)


def _is_strange(gap: NotChecked, origin: Origin) -> bool:
    return origin == "dumps" and gap.reason is Reason.UNREADABLE and gap.what in _STATED


def _is_host_alone(checks: Mapping[str, bool], origin: Origin, active: Iterable[Finding]) -> bool:
    """Whether the files of a machine show only processors and memory: its GPUs and adapters may be hidden."""
    judged = [code for code, evaluated in checks.items() if evaluated and set(codes()[code].severity) != {"info"}]
    host = bool(judged) and all(code.startswith(_HOST) for code in judged)
    return origin == "capture" and host and not any(one.severity != "info" for one in active)


def _has_cause(symptom: Finding, found: Iterable[Finding]) -> bool:
    """Whether another finding is the cause of a failed test: it is about the same device, or about the same lines."""
    if symptom.case != "test":
        return False
    lines = {one.source for one in symptom.evidence}
    others = (one for one in found if one.severity != "info" and one.code != NOT_ENOUGH_EVIDENCE)
    return any(one.subject == symptom.subject or lines & {it.source for it in one.evidence} for one in others)


def why_unknown(report: Report) -> tuple[str, bool]:
    """Why the verdict of the report is unknown, and whether its unchecked items have the details."""
    vital = [
        code for code, evaluated in report.checks.items() if not evaluated and code in codes() and codes()[code].vital
    ]
    if vital:
        return f"{_DOUBT}: {', '.join(vital)} could not be checked.", True
    if broken := [run.name for run in report.runs if not run.ok]:
        sources = f"source{'s' * (len(broken) > 1)} {', '.join(broken)}"
        return f"{_DOUBT}: a bug in linkgauge stopped the {sources}.", False
    if stale := [finding.code for finding in report.findings if finding.stale and not finding.silenced]:
        codes_of = ", ".join(dict.fromkeys(stale))
        return f"{_DOUBT}: {codes_of} could not be checked again.", False
    if any(finding.code == NOT_ENOUGH_EVIDENCE for finding in report.findings):
        return "There is a symptom without a known cause.", False
    if any(finding.case == UNEXPLAINED for finding in report.findings):
        return "A driver or a program reports a fault in words that linkgauge does not know.", False
    if any(gap.reason is Reason.CONTRADICTED for gap in report.not_checked):
        return "Two sources disagree on the state of a device.", True
    if any(gap.reason is Reason.INCOMPLETE for gap in report.not_checked):
        return "A part of the input is missing or was not read. The rest shows no fault.", True
    if any(_is_strange(gap, report.source) for gap in report.not_checked):
        return "The state of a device is in words that linkgauge does not know.", True
    if any(finding.severity == "info" for finding in report.findings):
        return "The input cannot show a fault.", False
    return "Nothing could be judged.", False
