"""All samples of a report. Unknown values and devices that are gone have no sample."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import get_args

from ... import __version__
from ...models.diagnosis.headlines import headline
from ...models.facts.units import from_utc
from ...models.report import COSTS, SEVERITIES, Finding, Report, Verdict
from .counter_series import counters, nvlinks
from .device_info import devices
from .link_series import links
from .sample import CycleInfo, Sample

_OF_JOBS = frozenset({"memlock-low", "shm-small"})  # limits of a job, not of interest without one


def samples(report: Report, cycle: CycleInfo | None, labels: Mapping[str, str], detail: str) -> Iterator[Sample]:
    """The samples of a report, each series once: Prometheus refuses a page with a duplicate series.

    `labels`: labels of the site file.
    """
    reported: set[tuple[str, ...]] = set()
    for sample in _samples(report, cycle, labels, detail):
        key = (sample.metric, *(text for pair in sorted(sample.labels.items()) for text in pair))
        if key not in reported:
            reported.add(key)
            yield sample


def _samples(report: Report, cycle: CycleInfo | None, labels: Mapping[str, str], detail: str) -> Iterator[Sample]:
    yield from _node(report, labels)
    yield from _evaluated(report)
    yield from _corroborated(report)
    yield from devices(report, detail)
    yield from links(report, cycle, detail)
    yield from counters(report, cycle, detail)
    yield from nvlinks(report)
    yield from _impact(report)
    yield from _runs(report, cycle)
    yield from _cycle(report, cycle)


def _node(report: Report, labels: Mapping[str, str]) -> Iterator[Sample]:
    yield Sample("linkgauge_build_info", {"version": __version__, "python": platform.python_version()}, 1.0)
    own = {"node": report.node or "", "profile": report.profile.name if report.profile else ""}
    yield Sample("linkgauge_node_info", {**labels, **own}, 1.0)
    for verdict in get_args(Verdict):
        yield Sample("linkgauge_verdict", {"verdict": verdict}, float(report.verdict == verdict))


def _impact(report: Report) -> Iterator[Sample]:
    for name, factor in report.impact.items():
        op, _, scope = name.partition("@")
        yield Sample("linkgauge_impact_slowdown_ratio", {"collective": op, "scope": scope or "node"}, factor)
    if report.training:
        labels = {"collective": "step", "scope": "job"}
        if report.cost == "cannot run":
            yield Sample("linkgauge_impact_slowdown_ratio", labels, math.inf)
        elif report.training.slower is not None and report.cost != "unknown":
            yield Sample("linkgauge_impact_slowdown_ratio", labels, report.training.slower.usual)


def _evaluated(report: Report) -> Iterator[Sample]:
    """Findings, checks, and gaps."""
    yield from _findings(report)
    for code, evaluated in report.checks.items():
        if code in _OF_JOBS and not evaluated and report.context == "host":
            continue
        yield Sample("linkgauge_check", {"code": code}, float(evaluated))
    missed = Counter((one.what, one.reason.value) for one in report.not_checked)
    for (check, reason), number in missed.items():
        yield Sample("linkgauge_not_checked", {"check": check, "reason": reason}, number)


def _findings(report: Report) -> Iterator[Sample]:
    """Findings by code and subject: the highest severity, the earliest time, and stale if all of them are stale."""
    reported: dict[tuple[str, str], list[Finding]] = {}
    for finding in report.findings:
        if finding.silenced is None:
            reported.setdefault((finding.code, finding.subject), []).append(finding)
    for (code, subject), found in reported.items():
        labels = {"code": code, "subject": subject}
        severity = max(len(SEVERITIES) - SEVERITIES.index(one.severity) for one in found)
        yield Sample("linkgauge_finding", labels, 1.0)
        yield Sample("linkgauge_finding_severity", labels, severity)
        worst = min(found, key=lambda one: SEVERITIES.index(one.severity))
        about = {"device": worst.device or subject, "message": headline(worst)}
        yield Sample("linkgauge_finding_message", {**labels, **about}, 1.0)
        yield Sample(
            "linkgauge_finding_cost", {**labels, "cost": min((one.cost for one in found), key=COSTS.index)}, 1.0
        )
        if all(one.stale is not None for one in found):
            yield Sample("linkgauge_finding_stale", labels, 1.0)
        if times := [from_utc(one.since) for one in found if one.since]:
            yield Sample("linkgauge_finding_timestamp_seconds", labels, min(times))
    for finding in report.findings:
        if finding.silenced is not None:
            labels = {"code": finding.code, "subject": finding.subject}
            yield Sample("linkgauge_finding_silenced", labels, 1.0)


def _corroborated(report: Report) -> Iterator[Sample]:
    """How many things independent evidence supports, and how many it does not."""
    for group, by in report.coverage.corroborated.items():
        for evidence, number in by.items():
            yield Sample("linkgauge_corroborated", {"group": group, "by": evidence}, number)
    for group, number in Counter(one.group for one in report.coverage.uncorroborated).items():
        yield Sample("linkgauge_corroborated", {"group": group, "by": "none"}, number)


def _runs(report: Report, cycle: CycleInfo | None) -> Iterator[Sample]:
    """The last run of each source."""
    moved = {**{run.name: run.bytes for run in report.runs if run.bytes}, **(cycle.moved if cycle else {})}
    for name, run in {run.name: run for run in report.runs}.items():
        probe = {"probe": name}
        yield Sample("linkgauge_probe_success", probe, float(run.ok))
        yield Sample("linkgauge_probe_duration_seconds", probe, run.seconds)
        yield Sample("linkgauge_probe_timestamp_seconds", probe, run.at)
    for name, bytes_moved in moved.items():
        yield Sample("linkgauge_probe_bytes_total", {"probe": name}, bytes_moved)


def _cycle(report: Report, cycle: CycleInfo | None) -> Iterator[Sample]:
    if cycle:
        yield Sample("linkgauge_cycle_timestamp_seconds", {}, cycle.ended)
        yield Sample("linkgauge_cycle_duration_seconds", {}, cycle.seconds)
        yield Sample("linkgauge_stuck_children", {}, cycle.stuck)
        found = {(one.code, one.subject) for one in report.findings}  # also if the service has stopped
        for code, subject in cycle.would_drain:
            if (code, subject) in found:
                yield Sample("linkgauge_gate_would_drain", {"code": code, "subject": subject}, 1.0)
    elif report.taken_at is not None:
        yield Sample("linkgauge_cycle_timestamp_seconds", {}, from_utc(report.taken_at))
