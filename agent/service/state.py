"""The state of the service for `linkgauge status`: stuck sources, the next measurement, and the times of findings."""

from __future__ import annotations

from collections.abc import Mapping

from ...models.diagnosis.ignored import unused
from ...models.diagnosis.verdict import why_unknown
from ...models.report import Report
from ..pipeline.cycle import Memory
from ..state.status_file import ServiceState, Stuck
from .schedule import LastRun, next_try


def service_state(
    report: Report,
    memory: Memory,
    last_runs: Mapping[str, LastRun],
    measures_at: float | None,
    now: float,
    monotonic: float,
) -> ServiceState:
    """The state after a cycle. `measures_at` and the times of `last_runs` are of the clock `monotonic`."""
    offset = now - monotonic
    return ServiceState(
        node=report.node,
        unknown=why_unknown(report)[0] if report.verdict == "unknown" else None,
        measures_at=None if measures_at is None else measures_at + offset,
        stuck=tuple(
            Stuck(name=name, tries=run.hung, again=next_try(run) + offset)
            for name, run in sorted(last_runs.items())
            if run.hung
        ),
        last_seen={f"{code}:{subject}": one.last for (code, subject, _), one in memory.histories.items() if one.shown},
        unused=tuple(sorted({entry.partition(":")[0] for entry in unused(memory.ignored, now)})),
    )
