"""The front page of the service: the verdict, the findings, and links to the other pages."""

from __future__ import annotations

from html import escape

from ... import __version__
from ...models.report import Report

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>linkgauge: {node}</title></head><body>
<h1>{node}: {verdict}</h1>
<p>linkgauge {version}, {when}</p>
<ul>
{findings}
</ul>
<p><a href="/metrics">metrics</a> <a href="/report">report</a> <a href="/healthz">health</a></p>
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
        when=escape(report.taken_at or "no report yet"),
        findings="\n".join(f"<li>{escape(text)}</li>" for text in findings or ["no findings"]),
    )
