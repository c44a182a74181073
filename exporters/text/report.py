"""A report as text: what to do with the node, one line per finding; then details, gaps, and the sources that were read.

Three amounts: "brief" is the first part without the name of the node, so that equal nodes have equal texts; "usual"
fits three findings on a screen of 40 lines; "full" leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, TypeAlias

from ...models.catalog import codes
from ...models.diagnosis.headlines import action
from ...models.diagnosis.verdict import why_unknown
from ...models.facts.units import as_bytes
from ...models.report import Report
from .cost import cost
from .coverage import coverage_text, scope_of
from .findings import Detail, block, details_of, grouped, has_block, summary
from .measured import measured
from .not_checked import gaps, lines_by_reason, without_job_limits
from .terminal import WIDTH, Paint, hanging, painter, safe, wrap
from .vocabulary import counted, device_counts, listed

Amount: TypeAlias = Literal["brief", "usual", "full"]
_ORIGINS = {"live": "", "capture": " from a capture", "dumps": " from dumps"}
_SEE = " See NOT CHECKED."
_MOST_REASONS = 3  # in the brief of an unknown verdict
_MOST_SOURCES = 4  # names of failed sources
_MOST_LINES = 12  # lines of findings in the first part


def as_text(report: Report, colour: bool, amount: Amount = "usual") -> str:
    """The report as text. Control characters from outside are escaped; `colour` adds our own escape sequences."""
    paint = painter(colour)
    first = _first_part(report, paint, named=amount != "brief")
    if amount == "brief":
        return "\n".join(first) + "\n"
    groups = grouped(report.findings)
    details = details_of(groups, amount == "full")
    blocks = [block(group, paint, details) for group in groups if has_block(group, details)]
    rates: Iterable[str] = (
        measured(report, paint) if details in (Detail.WHOLE, Detail.ALL) else ()
    )  # findings name the slow flows
    if report.job is not None:
        from . import job_rates  # imported only for reports of jobs

        rates = job_rates.rates(report.job, paint, amount == "full")
    sections: tuple[Iterable[str], ...] = (
        first,
        *blocks,
        rates,
        cost(report, paint),
        _gaps(report, paint, amount == "full"),
        _looked_at(report, amount == "full"),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _first_part(report: Report, paint: Paint, named: bool) -> Iterator[str]:
    """The verdict, node, machine type, and what to do with the node; then why the verdict is unknown; then one line per
    finding.
    """
    machine = safe(report.profile.name) if report.profile else ""
    context = "as the job sees it" if report.context == "job" else ""
    node = safe(report.node or "unnamed node") if named else ""
    about = "  ".join(filter(None, (node, machine, context, f"{action(report)} the node")))
    if report.job is not None:
        from .job_rates import title_of

        about = "  ".join(filter(None, (title_of(report.job), machine)))
    title = _headline(report)
    first, *others = hanging(f"{title}  ", about, WIDTH, indent=4)
    yield first.replace(title, paint(title, report.verdict), 1)
    yield from others
    if report.verdict == "unknown":
        why, in_gaps = why_unknown(report)
        yield from wrap(safe(why) + (_SEE if named and in_gaps else ""), WIDTH)
        if not named:  # a whole report has them below
            yield from islice(lines_by_reason(without_job_limits(report.not_checked), WIDTH), _MOST_REASONS)
    lines = [list(summary(group, paint)) for group in grouped(report.findings) if not group[0].silenced]
    for line in lines[:_MOST_LINES]:
        yield from line
    silenced = sum(1 for one in report.findings if one.silenced)
    more = len(lines) - _MOST_LINES
    if more > 0:
        yield f"and {counted(more, 'more kind')} of findings, all with -v"
    if silenced:
        yield f"and {counted(silenced, 'silenced finding')}"


def _headline(report: Report) -> str:
    """ "OK", or "OK for NVLink state of 8 GPUs, 2 checks not evaluated" for dumps, which show a part of a machine."""
    missing = len(_not_evaluated(report, False))
    limited = missing and report.verdict in ("ok", "degraded")
    scope = f" for {scope_of(report)}" if report.verdict == "ok" and report.source == "dumps" else ""
    return report.verdict.upper() + scope + (f", {counted(missing, 'check')} not evaluated" if limited else "")


def _not_evaluated(report: Report, full: bool) -> list[str]:
    """The codes that could not be judged; without `full`, not those that only a job can judge."""
    without_limits = not full and len(without_job_limits(report.not_checked)) < len(report.not_checked)
    return [
        code
        for code, evaluated in report.checks.items()
        if not evaluated and not (without_limits and code in codes() and codes()[code].of_job)
    ]


def _gaps(report: Report, paint: Paint, full: bool) -> Iterator[str]:
    not_evaluated = [safe(code) for code in _not_evaluated(report, full)]
    not_checked = report.not_checked if full else without_job_limits(report.not_checked)
    if not not_checked and not not_evaluated:
        return
    yield paint("NOT CHECKED", "bold")
    if full:
        for gap in gaps(not_checked):
            yield from hanging("  ", gap.what, WIDTH, indent=6)
            for label, text in (("why", gap.why), ("how", gap.how)):
                if text:
                    first, *others = hanging(f"    {label}  ", text, WIDTH)
                    yield first.replace(label, paint(label, "dim"), 1)
                    yield from others
    else:
        yield from lines_by_reason(not_checked, WIDTH)
    if not_evaluated:
        yield from hanging("  ", f"so these could not be judged: {', '.join(not_evaluated)}", WIDTH, indent=4)


def _looked_at(report: Report, full: bool) -> Iterator[str]:
    """The basis of the verdict: checks, devices and sources."""
    kinds = [device.kind for device in report.topology.devices]
    evaluated = sum(report.checks.values())
    parts = [f"Judged {evaluated} of {counted(len(report.checks), 'check')}" if report.checks else "Judged nothing"]
    parts += [f"over {', '.join(device_counts(kinds))}"] if device_counts(kinds) else []
    taken = f" Taken {safe(report.taken_at)}{_ORIGINS[report.source]}." if report.taken_at else ""
    read = _sources_read(report, full)
    if report.job is not None:
        from .job_rates import read_in_words

        read = f" {read_in_words(report.job)}"
    yield from wrap(" ".join(parts) + "." + read + taken, WIDTH)
    if evidence := coverage_text(report.coverage, not full):
        yield from wrap(f"Evidence: {evidence}.", WIDTH)
    if any(not finding.silenced for finding in report.findings):
        more = "" if full else ". All details: -v"
        yield from wrap(f"What a code means and how to see it: linkgauge explain CODE{more}", WIDTH)


def _sources_read(report: Report, full: bool) -> str:
    """The sentence; with the slowest sources if it is `full`."""
    if not report.runs:
        return ""
    slow = sorted(report.runs, key=lambda run: -run.seconds)[:3]
    failed = [safe(run.name) for run in report.runs if not run.ok]
    moved = sum(run.bytes for run in report.runs)
    text = f" Read {counted(len(report.runs), 'source')}"
    text += "" if report.seconds is None else f" in {report.seconds:.1f} s"
    text += f" ({', '.join(f'{safe(run.name)} {run.seconds:.2f} s' for run in slow)})" if full else ""
    text += f", {as_bytes(moved)} moved" if moved else ""
    return text + (f"; failed: {listed(failed, _MOST_SOURCES)}." if failed else ".")
