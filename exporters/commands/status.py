"""The state of the service as text and as JSON, for `linkgauge status`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from ...models.diagnosis.headlines import one_line
from ...models.facts.units import as_utc
from ...models.report import Finding, Verdict
from ..text.terminal import WIDTH, Paint, hanging, painter, safe
from ..text.vocabulary import counted


class ServiceView(Struct, frozen=True, kw_only=True):
    """What the service knows. Times in seconds since 1970."""

    node: str | None
    verdict: Verdict
    unknown: str | None  # why the verdict is unknown
    at: float  # end of the last cycle
    every: float  # seconds between two cycles
    now: float
    findings: Sequence[Finding]
    last_seen: Sequence[float | None]  # of each finding
    stuck: Sequence[tuple[str, int, float]]  # name of a source, number of reads without an answer, next read
    requests: Sequence[str]  # holds and releases: "released by root, process 4711, for another 300 s"
    measures_at: float | None
    unused: Sequence[str]  # codes of entries of [ignore] that matched nothing for 30 days


def as_text(view: ServiceView, colour: bool = False) -> str:
    """The verdict, one block per finding, and one line for each other part."""
    return "\n".join(_lines(view, painter(colour))) + "\n"


def as_json(view: ServiceView) -> str:
    """One line of JSON. Times are text in UTC, as in reports."""

    def when(at: float | None) -> str | None:
        return None if at is None else as_utc(at)

    findings = [
        {
            "code": one.code,
            "severity": one.severity,
            "subject": one.subject,
            "device": one.device,
            "fact": one.fact,
            "message": one.message,
            "first_step": one.first_step,
            "first_seen": one.since,
            "last_seen": when(last),
            "stale": one.stale,
            "silenced": one.silenced,
        }
        for one, last in zip(view.findings, view.last_seen, strict=True)
    ]
    whole = {
        "schema": "linkgauge.status/1",
        "node": view.node,
        "verdict": view.verdict,
        "unknown_because": view.unknown,
        "last_cycle": when(view.at),
        "age_seconds": round(max(view.now - view.at, 0.0), 1),
        "interval_seconds": view.every,
        "findings": findings,
        "stuck": [{"source": name, "tries": tries, "next_read": when(at)} for name, tries, at in view.stuck],
        "requests": list(view.requests),
        "next_measurement": when(view.measures_at),
        "unused_ignore_codes": list(view.unused),
    }
    return msgspec.json.encode(whole).decode()


def _lines(view: ServiceView, paint: Paint) -> Iterator[str]:
    yield f"{paint(view.verdict.upper(), view.verdict)}  {safe(view.node or 'this node')}  linkgauge serve"
    if view.unknown:
        yield from _row("unknown because", view.unknown)
    yield from _row("last cycle", f"{duration(view.now - view.at)} ago; the interval is {duration(view.every)}")
    for finding, last in zip(view.findings, view.last_seen, strict=True):
        yield from _finding(finding, last, paint)
    if not view.findings:
        yield from _row("findings", "none")
    for name, tries, again in view.stuck:
        times = counted(tries, "read")
        yield from _row("stuck source", f"{name}: no answer to {times}; next read {_in(again - view.now)}")
    for request in view.requests:
        yield from _row("no measurement", request)
    yield from _row("next measurement", _next(view))
    if view.unused:
        several = ", ".join(view.unused)
        yield from _row("[ignore]", f"entries matched no finding for 30 days: {several}; the log names the entries")


def _finding(finding: Finding, last: float | None, paint: Paint) -> Iterator[str]:
    if finding.silenced is not None:
        yield from hanging("", f"ignored: {finding.code} {safe(finding.device or finding.subject)}", WIDTH)
    else:
        first, *others = hanging("", safe(one_line(finding)), WIDTH)
        title = finding.severity.upper()
        yield paint(title, finding.severity) + first.removeprefix(title)
        yield from others
    seen = f", last {as_utc(last)}" if last is not None else ""
    yield from hanging("    ", f"{finding.code}: first seen {finding.since or 'at an unknown time'}{seen}", WIDTH)
    if finding.stale:
        yield from hanging("    ", safe(f"not evaluated again: {finding.stale}"), WIDTH)


def _next(view: ServiceView) -> str:
    if view.measures_at is None:
        return "none: the configuration has no [probes] every"
    return _in(view.measures_at - view.now)


def _in(seconds: float) -> str:
    return f"in {duration(seconds)}" if seconds > 0 else "in the next cycle"


def duration(seconds: float) -> str:
    """ "45 s", "12 min", "3 h", "5 d"; never less than 0 s."""
    for unit, length, least in (("d", 86400.0, 172800.0), ("h", 3600.0, 7200.0), ("min", 60.0, 120.0)):
        if seconds >= least:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def _row(label: str, text: str) -> Iterator[str]:
    yield from hanging(f"  {label:<17}", safe(text), WIDTH)
