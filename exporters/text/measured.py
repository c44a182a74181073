"""Measured rates as a short table: one row per group of equal flows, with slowest, median and expected rate."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.averages import median
from ...models.facts.records import COLLECTIVES
from ...models.facts.units import as_bytes, as_gigabytes
from ...models.report import Level, Report
from .terminal import Paint, safe

_MOST = 8  # rows


def measured(report: Report, paint: Paint) -> Iterator[str]:
    """The lines of the table; none if nothing was measured."""
    groups: dict[tuple[str, ...], list[Level]] = {}
    for level in report.levels:
        if level.observed is not None:
            groups.setdefault(_alike(report, level), []).append(level)
    if not groups:
        return
    yield paint("MEASURED", "bold") + f"{'flows':>28}{'slowest':>11}{'median':>11}{'expected':>11}  GB/s"
    for (name, *_), levels in list(groups.items())[:_MOST]:
        yield f"  {safe(name):29}{len(levels):5}{_row(levels)}"
    if len(groups) > _MOST:
        yield f"  and {len(groups) - _MOST} more kinds, all in --format json"


def _alike(report: Report, level: Level) -> tuple[str, ...]:
    """The key of a group of equal flows: title (operation, kinds of ends, flows at the same time) and link class."""
    kinds = [report.topology.kind(end) for end in level.ends]
    if level.op in COLLECTIVES:
        size = f", {as_bytes(level.size)}" if level.size else ""
        return f"{level.op}, {len(kinds)} ranks{size}", level.op
    beside = f", {len(level.beside) + 1} at once" if level.beside else ""
    via = f" by {level.via}" if level.via else ""
    return f"{level.op} {'-'.join(kinds)}{via}{beside}", level.link_class


def _row(levels: list[Level]) -> str:
    """The rates of one group, and the slowest flow if it is 3 % below the median."""
    rates = sorted((level.observed or 0.0, level.flow.subject) for level in levels)
    typical = median(rate for rate, _ in rates)
    wanted = [level.expected[0].typical for level in levels if level.expected]
    expected = _number(median(wanted)) if wanted else "-"
    slowest = f"  {safe(rates[0][1])}" if len(rates) > 1 and rates[0][0] < 0.97 * typical else ""
    return f"{_number(rates[0][0]):>11}{_number(typical):>11}{expected:>11}{slowest}"


def _number(rate: float) -> str:
    return as_gigabytes(rate).removesuffix(" GB/s")
