"""The pages of the last cycle as bytes. Each page is rendered at its first request, at most once per cycle."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from ...exporters.formats.json import as_json
from ...exporters.metrics.prometheus import page
from ...exporters.metrics.sample import CycleInfo
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.facts.units import as_utc
from ...models.graph.topology import Topology
from ...models.report import Coverage, Finding, Report
from ...models.site.gate import Gate
from ..gate.decision import decision_of

Form: TypeAlias = Literal["metrics", "openmetrics", "report", "front", "whole", "html"]  # front: for strangers
_MISSED = 4  # cycles without a report after which the status is unknown
_NO_REPORT = Report(node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown")
_QUICK = 1  # gzip level: shrinks a page to a tenth in a millisecond


class _Published(Struct, frozen=True):
    """One report and its pages. A new report replaces the whole object, so no lock is needed."""

    report: Report
    cycle: CycleInfo | None
    since: float  # monotonic seconds
    every: float  # seconds until the next report is due
    labels: Mapping[str, str]
    detail: str
    gate: Gate = Gate()
    disabled: str | None = None  # why the gate is disabled
    pages: dict[tuple[Form, bool], bytes] = field(default_factory=dict)


class Pages:
    """The pages of a service. The main loop puts reports in and the web server reads pages, each in its own thread."""

    def __init__(
        self,
        labels: Mapping[str, str] | None = None,
        detail: str = "",
        every: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
        findings: tuple[Finding, ...] = (),
        gate: Gate = Gate(),  # noqa: B008  # immutable
    ) -> None:
        """`labels` and `detail` as in `families`; `every`: seconds between two cycles.

        `findings` of the last run of the service are shown until its first cycle.
        """
        self._monotonic = monotonic
        self._labels, self._detail, self._gate = labels or {}, detail, gate
        before = replace(_NO_REPORT, findings=findings)
        initial = _Published(_stopped_report(before, None), None, monotonic(), every, self._labels, detail, gate)
        self._published, self._stopped = initial, initial

    def configure(self, labels: Mapping[str, str], detail: str, gate: Gate) -> None:
        """Set labels, detail and gate for the next reports."""
        self._labels, self._detail, self._gate = labels, detail, gate

    def put(self, report: Report, cycle: CycleInfo, disabled: str | None = None) -> None:
        """Replace the report. `disabled`: why all gates are disabled."""
        now, every = self._monotonic(), cycle.every
        self._published = _Published(report, cycle, now, every, self._labels, self._detail, self._gate, disabled)

    def alive(self) -> bool:
        """Whether a report arrived within the last cycles."""
        published = self._published
        return self._monotonic() - published.since <= _MISSED * published.every

    def ready(self) -> tuple[bool, str]:
        """Whether the gate of the node is open, and why."""
        published = self._current()
        report, at = published.report, published.cycle.ended if published.cycle else None
        gate = decision_of(published.gate, report.verdict, report.findings, at, published.disabled)
        return not gate.closed, str(gate)

    def read(self, form: Form, zipped: bool = False) -> bytes:
        """The page. If the main loop has stopped, a page with the verdict "unknown" and the stale findings."""
        published = self._current()
        key = (form, zipped)
        if key not in published.pages:
            published.pages[key] = gzip.compress(self.read(form), _QUICK) if zipped else _rendered(published, form)
        return published.pages[key]

    def _current(self) -> _Published:
        published = self._published
        if self.alive():
            return published
        if self._stopped.since != published.since or self._stopped.cycle is not published.cycle:
            self._stopped = replace(published, report=_stopped_report(published.report, published.cycle), pages={})
        return self._stopped


def _stopped_report(report: Report, cycle: CycleInfo | None) -> Report:
    """The report of a stopped main loop: the node, the verdict "unknown", and the findings, which are stale."""
    why = f"no cycle since {as_utc(cycle.ended)}" if cycle else "no cycle yet"
    gap = NotChecked(what="cycle", subject="node", reason=Reason.STOPPED, detail=why, how="read the log of the service")
    return replace(
        report,
        verdict="unknown",
        findings=tuple(replace(one, stale=one.stale or why) for one in report.findings),
        not_checked=(gap,),
        checks={},
        coverage=Coverage(),
        levels=(),
        observations=(),
        topology=Topology(),
        runs=(),
    )


def _rendered(published: _Published, form: Form) -> bytes:
    if form == "report":
        return as_json(published.report).encode()
    if form == "html":
        from ...exporters.html.report_page import as_html  # jinja2 is loaded at the first request

        return as_html(published.report).encode()
    if form in ("front", "whole"):
        from ...exporters.html.front_page import front_page

        return front_page(published.report, trusted=form == "whole").encode()
    return page(
        published.report, published.cycle, published.labels, published.detail, openmetrics=form == "openmetrics"
    )
