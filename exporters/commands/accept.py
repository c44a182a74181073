"""The text output of `linkgauge accept`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.catalog import NOT_ENOUGH_EVIDENCE, codes
from ...models.facts.units import as_utc
from ...models.report import Report
from ..text.terminal import hanging, safe
from ..text.vocabulary import counted

WIDTH = 80


def as_accepted(report: Report, at: float, cleared: Sequence[str], measured: int, kept: Sequence[float]) -> str:
    """The text for an accepted node: cleared findings, remaining findings, and the rates of the baseline.

    `measured`: number of rates measured now. `kept`: times of the rates that an earlier acceptance measured.
    """
    lines = [f"ACCEPTED  {safe(report.node or 'unnamed node')}  {as_utc(at)}"]
    for text in cleared:
        lines += hanging("  cleared      ", safe(text), WIDTH)
    for text in _wrong(report):
        lines += hanging("  still there  ", text, WIDTH)
    if measured:
        rates = counted(measured, "rate")
        lines += hanging("  baseline     ", f"{rates} measured; linkgauge compares later rates with them", WIDTH)
    if kept:
        rates = f"{counted(len(kept), 'rate')} kept, not measured now: of {as_utc(min(kept))} or later"
        lines += hanging("  baseline     ", rates, WIDTH)
    if not measured and not kept:
        why = next((f" ({gap.why})" for gap in report.not_checked if gap.what == "bandwidth"), "")
        lines += hanging("  baseline     ", safe(f"no rates{why}: there is no rate to compare later rates with"), WIDTH)
    return "\n".join(lines)


def as_refused(report: Report) -> str:
    """The text for a refused node, with the reasons."""
    lines = [f"NOT ACCEPTED  {safe(report.node or 'unnamed node')}  {report.verdict}"]
    for text in _wrong(report):
        lines += hanging("  ", text, WIDTH, indent=4)
    not_evaluated = [code for code, evaluated in report.checks.items() if not evaluated and codes()[code].vital]
    if not_evaluated:
        lines += hanging("  ", f"could not be judged: {', '.join(not_evaluated)}", WIDTH, indent=4)
    if report.verdict == "unknown" and not any(report.checks.values()):
        lines.append("  nothing could be judged")
    lines += hanging("", "See linkgauge diagnose for details. Fix the node first, or pass --anyway.", WIDTH)
    return "\n".join(lines)


def _wrong(report: Report) -> Iterator[str]:
    """The findings that count, and symptoms without a known cause."""
    for one in report.findings:
        if not one.silenced and (one.severity != "info" or one.code == NOT_ENOUGH_EVIDENCE):
            yield safe(f"{one.severity} {one.code} {one.subject}: {one.message}")
