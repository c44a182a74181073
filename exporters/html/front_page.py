"""The front page of the service: the page of the report with links, for strangers without what needs a login."""

from __future__ import annotations

from msgspec.structs import replace

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.graph.topology import Topology
from ...models.report import Finding, Report
from .report_page import as_html

_PAGES = (
    ("/report.html", "report as a file"),
    ("/report", "JSON"),
    ("/metrics", "metrics"),
    ("/healthz", "health"),
    ("/ready", "gate"),
)
_HIDDEN = (
    "Evidence, causes, steps and the picture of the node need a request from the node itself, a password or a client "
    "certificate. On the node, linkgauge diagnose shows them."
)


def front_page(report: Report, trusted: bool = False) -> str:
    """The page of the report with links to the other pages; not `trusted`: what every client may read."""
    return as_html(report, _PAGES) if trusted else as_html(_public(report), _PAGES, _HIDDEN)


def _public(report: Report) -> Report:
    """The report with what the metrics have too: no evidence, no remedy, no detail of a failure, no topology."""
    return replace(
        report,
        findings=tuple(_told(one) for one in report.findings if one.silenced is None),
        not_checked=tuple(map(_named, report.not_checked)),
        training=None,
        topology=Topology(),
        cables={},
    )


def _told(one: Finding) -> Finding:
    return replace(one, cause=None, expected_source=None, location={}, evidence=(), remedy=None, steps=())


def _named(one: NotChecked) -> NotChecked:
    if one.reason is Reason.STOPPED:
        return one
    return NotChecked(what=one.what.partition(".")[0], subject="node", reason=one.reason, detail=one.reason.value)
