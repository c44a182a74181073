"""What a service shows of its last cycle, as bytes: rendered when first asked for, each form only once a cycle."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ...exporters.formats.html import front_page
from ...exporters.formats.json import as_json
from ...exporters.metrics.prometheus import page
from ...exporters.metrics.sample import Round
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked
from ...models.facts.units import as_utc
from ...models.graph.topology import Topology
from ...models.report import Report

Form: TypeAlias = Literal["metrics", "openmetrics", "report", "front"]
_MISSED = 4  # cycles after which nobody knows any more how the node is
_QUICK = 1  # gzip's level: a page becomes a tenth of its size in a millisecond


@dataclass(frozen=True, slots=True)
class _Shown:
    """One report and its pages; put in the place of the one before as a whole, so that no lock is needed."""

    report: Report
    round: Round | None
    since: float  # by a clock that does not jump
    every: float  # seconds until the next is due
    labels: Mapping[str, str]
    detail: str
    pages: dict[tuple[Form, bool], bytes] = field(default_factory=dict)


class Pages:
    """The pages of a service. The loop puts reports in, the web server takes bytes out; each has its own thread."""

    def __init__(
        self,
        labels: Mapping[str, str] | None = None,
        detail: str = "",
        every: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`labels` and `detail` as in `families`; `every`: seconds from one cycle to the next."""
        self._monotonic = monotonic
        self._labels, self._detail = labels or {}, detail
        begun = _Shown(_silent(None, None), None, monotonic(), every, self._labels, detail)
        self._shown, self._silence = begun, begun

    def labelled(self, labels: Mapping[str, str], detail: str) -> None:
        """Other labels and detail, from the next report on."""
        self._labels, self._detail = labels, detail

    def put(self, report: Report, round: Round) -> None:
        """Show this report from now on."""
        self._shown = _Shown(report, round, self._monotonic(), round.every, self._labels, self._detail)

    def alive(self) -> bool:
        """Whether the loop has put something in within the last cycles."""
        shown = self._shown
        return self._monotonic() - shown.since <= _MISSED * shown.every

    def read(self, form: Form, zipped: bool = False) -> bytes:
        """The page; where the loop stands still, one that says that nothing is known."""
        shown = self._current()
        key = (form, zipped)
        if key not in shown.pages:
            shown.pages[key] = gzip.compress(self.read(form), _QUICK) if zipped else _rendered(shown, form)
        return shown.pages[key]

    def _current(self) -> _Shown:
        shown = self._shown
        if self.alive():
            return shown
        if self._silence.since != shown.since or self._silence.round is not shown.round:
            self._silence = replace(shown, report=_silent(shown.report, shown.round), pages={})
        return self._silence


def _silent(report: Report | None, round: Round | None) -> Report:
    """What is left of a report when the loop stands still: whose it is, and that nobody knows."""
    why = f"no cycle since {as_utc(round.ended)}" if round else "no cycle yet"
    gap = NotChecked(
        what="cycle", subject="node", reason=Reason.STOPPED, detail=why, how="look into the log of the service"
    )
    known = report or Report(node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown")
    return replace(
        known,
        verdict="unknown",
        findings=(),
        not_checked=(gap,),
        checks={},
        levels=(),
        observations=(),
        topology=Topology(),
        runs=(),
    )


def _rendered(shown: _Shown, form: Form) -> bytes:
    if form == "report":
        return as_json(shown.report).encode()
    if form == "front":
        return front_page(shown.report).encode()
    return page(shown.report, shown.round, shown.labels, shown.detail, openmetrics=form == "openmetrics")
