"""The verdict of a report in one word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..catalog import codes
from ..facts.reason import Reason
from ..facts.records import NotChecked, Run
from ..report import Finding, Origin, Verdict


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
    also: a part of a dump was not read. An implausible measurement is no check. A check that only informs, or a line of
    a log that only informs, says nothing about faults.
    """
    counting = [one for one in found if not one.silenced and one.code != "measurement-invalid"]
    active = [one for one in counting if one.stale is None]
    stale = any(one.severity != "info" for one in counting if one.stale is not None)
    grave = {one.severity for one in active}
    if "critical" in grave:
        return "failed"
    vital = any(not evaluated and codes()[code].vital for code, evaluated in checks.items())
    blind = origin != "dumps" and (vital or not all(run.ok for run in runs))
    symptom = any(one.code == "not-enough-evidence" for one in active)
    checked = any(evaluated and set(codes()[code].severity) != {"info"} for code, evaluated in checks.items())
    if blind or stale or symptom or not (checked or "warning" in grave):
        return "unknown"
    if "warning" in grave:
        return "degraded"
    return "unknown" if any(one.reason is Reason.INCOMPLETE for one in unread) else "ok"
