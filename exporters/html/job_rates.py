"""The bus bandwidth of the communicators of a job: rows of a table, each with a bar."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...models.facts.units import as_size
from ...models.report import JobRate, Report
from ..text.vocabulary import counted

_MOST = 400  # rows


class Row(Struct, frozen=True):
    """One kind of collective of a communicator. `share`: of the fastest equal communicator, from 0 to 1."""

    communicator: str
    what: str
    observed: str
    expected: str
    state: str  # low, good, or "" if it was not judged
    share: float
    since: str


def rows(report: Report) -> tuple[list[Row], int]:
    """The rows, equal communicators together and the slowest first, and the number of all."""
    rates = report.job.rates if report.job else ()
    fastest: dict[str, float] = {}
    for one in rates:
        fastest[_what(one)] = max(fastest.get(_what(one), 0.0), one.observed)
    ordered = sorted(rates, key=lambda one: (not one.low, _what(one), one.observed, one.communicator))
    return list(_rows(ordered[:_MOST], fastest)), len(rates)


def _rows(rates: list[JobRate], fastest: dict[str, float]) -> Iterator[Row]:
    for one in rates:
        best = one.expected[0] if one.expected else None
        yield Row(
            communicator=f"{one.name} ({one.communicator})"
            if one.name and one.name not in one.communicator
            else one.communicator,
            what=_what(one),
            observed=f"{one.observed / 1e9:.1f}",
            expected=f"{best.low / 1e9:.1f} to {best.high / 1e9:.1f}" if best else "not known",
            state="" if one.low is None else "low" if one.low else "good",
            share=round(one.observed / fastest[_what(one)], 3),
            since="" if one.slower_from is None else f"operation {one.slower_from}",
        )


def _what(one: JobRate) -> str:
    return f"{one.op} {as_size(one.size)}, {one.ranks} ranks on {counted(one.nodes, 'node')}"
