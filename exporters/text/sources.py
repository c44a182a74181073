"""The sources that were read, as one sentence: their number, the time, the bytes that were moved, and failures."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...models.facts.records import Run
from ...models.facts.units import as_bytes
from ...models.report import Report
from .terminal import safe
from .vocabulary import counted, listed

_MOST = 4  # names of failed sources


def sources_read(report: Report, brief: bool) -> str:
    """The sentence, with the slowest sources unless it is `brief`."""
    if not report.runs:
        return ""
    slow = sorted(report.runs, key=lambda run: -run.seconds)[:3]
    failed = [safe(run.name) for run in report.runs if not run.ok]
    moved = sum(run.bytes for run in report.runs)
    text = f" Asked {counted(len(report.runs), 'source')} in {_wall_time(report.runs):.2f} s"
    text += "" if brief else f" ({', '.join(f'{safe(run.name)} {run.seconds:.2f} s' for run in slow)})"
    text += f", {as_bytes(moved)} moved" if moved else ""
    return text + (f"; failed: {listed(failed, _MOST)}." if failed else ".")


def _wall_time(runs: Iterable[Run]) -> float:
    """The seconds in which at least one source ran. Sources run in parallel; a service reads some of them seldom."""
    total, end = 0.0, -math.inf
    for run in sorted(runs, key=lambda run: run.at):
        total += max(0.0, run.at + run.seconds - max(run.at, end))
        end = max(end, run.at + run.seconds)
    return total
