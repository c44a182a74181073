"""The one word on a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..catalog import codes
from ..facts.records import Run
from ..report import Finding, Origin, Verdict


def verdict(found: Iterable[Finding], checks: Mapping[str, bool], origin: Origin, runs: Iterable[Run] = ()) -> Verdict:
    """Failed > unknown > degraded > ok. Info and silenced findings do not count.

    Unknown: a vital check was wanted and could not be judged, or a source broke off by a fault of its own, so that
    nobody knows what it would have said (dumps show what they show); a symptom was seen and its cause was not; or
    nothing could be judged at all: a number that cannot be says nothing of the node.
    """
    counted = [one for one in found if not one.silenced and one.code != "measurement-invalid"]
    grave = {one.severity for one in counted}
    if "critical" in grave:
        return "failed"
    vital = any(not evaluated and codes()[code].vital for code, evaluated in checks.items())
    blind = origin != "dumps" and (vital or not all(run.ok for run in runs))
    symptom = any(one.code == "not-enough-evidence" for one in counted)
    if blind or symptom or not (any(checks.values()) or grave):
        return "unknown"
    return "degraded" if "warning" in grave else "ok"
