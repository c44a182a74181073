"""The output of `linkgauge plan`: text, JSON and the chart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....exporters.commands import plan as exporter
from ....models.training.planner import Plan, Sweep, other
from ....models.training.step_time import Step
from ...inputs.site_file import BadInput
from .cluster_spec import ClusterSpec
from .plan_api import checkpoints, mounts, names_layout, plan, readings, size_of, sweep


def rendered(
    job: str, spec: ClusterSpec, top: int | None, form: str, plot: str | None, train: str | None = None
) -> str:
    """One layout, or the best `top` of all layouts. `train`: tokens of the whole training. Raises BadInput."""
    tokens = _tokens(train)
    if plot is not None and not plot.lower().endswith(".svg"):
        raise BadInput(f"--plot {plot}: name a file that ends in .svg")
    found, best, chosen = _found(job, spec, top)
    better = other(found.job, found.cluster, found.step) if best is None and not chosen else None
    if plot is not None:
        steps = best.best if best else [one for one in (found.step, better) if one]
        _draw(found, steps, plot)
    stored = exporter.Stored(checkpoints(job, spec, found), readings(spec, found), mounts(spec), size_of(job, spec))
    if form == "json":
        return exporter.as_json(found, better, best, stored)
    return exporter.as_text(found, better, tokens, stored, chosen) if best is None else exporter.as_table(found, best)


def _found(job: str, spec: ClusterSpec, top: int | None) -> tuple[Plan, Sweep | None, int]:
    """The plan, the sweep with `top`, and of how many layouts the plan is the best if the job names none."""
    if top is None and names_layout(job, spec):
        return plan(job, spec), None, 0
    best, tried = sweep(job, spec, top or 1)
    return best, tried if top is not None else None, tried.fit


def _tokens(text: str | None) -> float | None:
    """Parse "15T" as 15e12: data set sizes use powers of ten. Raises BadInput."""
    if text is None:
        return None
    read = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([MBT])", text)
    if read is None or not float(read[1]):
        raise BadInput(f"--train {text}: write the number of tokens as 15T, 300B or 500M")
    return float(read[1]) * {"M": 1e6, "B": 1e9, "T": 1e12}[read[2]]


def _draw(found: Plan, steps: Sequence[Step], path: str) -> None:
    from ....exporters.drawing.step_bars import as_svg

    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_svg(found, steps))
    except OSError as refused:
        raise BadInput(f"--plot {path}: {refused.strerror}") from None
