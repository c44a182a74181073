"""The front page of the service: the verdict, the findings, and links to the other pages."""

from __future__ import annotations

from html import escape

from ... import __version__
from ...models.diagnosis.verdict import why_unknown
from ...models.facts.reason import Reason
from ...models.report import Report

_MOST = 8  # unchecked items

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>linkgauge: {node}</title></head><body>
<h1>{node}: {verdict}</h1>
<p>linkgauge {version}, {when}</p>{unknown}
<ul>
{findings}
</ul>
<p><a href="/report.html">report</a> <a href="/report">JSON</a> <a href="/metrics">metrics</a>
<a href="/healthz">health</a></p>
</body></html>
"""


def front_page(report: Report) -> str:
    """A short HTML page without scripts."""
    findings = [
        f"{one.severity} {one.code}: {one.message}" + (f" (stale: {one.stale})" if one.stale else "")
        for one in report.findings
        if one.silenced is None
    ]
    return _PAGE.format(
        node=escape(report.node or "this node"),
        verdict=report.verdict,
        version=escape(__version__),
        unknown=_why_unknown(report) if report.verdict == "unknown" else "",
        when=escape(report.taken_at or "no report yet"),
        findings="\n".join(f"<li>{escape(text)}</li>" for text in findings or ["no findings"]),
    )


def _why_unknown(report: Report) -> str:
    """Why the verdict is unknown, what was not checked, and the command that shows the details.

    The page shows what the metric linkgauge_not_checked has: every client may read it.
    """
    stopped = next((one.detail for one in report.not_checked if one.reason is Reason.STOPPED), None)
    if stopped:
        return f"\n<p>The verdict is unknown: {escape(stopped)}. The log of the service has the reason.</p>"
    gaps = dict.fromkeys(f"{one.what.partition('.')[0]} ({one.reason.value})" for one in report.not_checked)
    shown = f" Not checked: {', '.join([*gaps][:_MOST])}." if gaps else ""
    more = " On the node, <code>linkgauge diagnose</code> shows the details."
    return f"\n<p>The verdict is unknown. {escape(why_unknown(report)[0] + shown)}{more}</p>"
