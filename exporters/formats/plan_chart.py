"""A chart of plans and sweeps: the parts of the step of each layout."""

from __future__ import annotations

from collections.abc import Sequence

from ...models.training.planner import BUBBLE, COMPUTE, Plan
from ...models.training.step_time import Step
from .figure import figure

# Colours for colour-blind readers (Okabe and Ito).
_PARTS = {
    COMPUTE: "#0072B2",
    "tensor": "#E69F00",
    "context": "#F0E442",
    "expert": "#CC79A7",
    "data": "#D55E00",
    "pipeline": "#009E73",
    BUBBLE: "#BBBBBB",
    "optimizer": "#56B4E9",
}
_MOST = 30  # layouts in one chart


def draw(plan: Plan, steps: Sequence[Step], path: str) -> None:
    """Draw one bar per layout, fastest first, with a line from the fastest to the slowest estimate. Raises OSError."""
    shown = list(steps[:_MOST])
    chart = figure(1.8 + 0.38 * len(shown))
    axes = chart.subplots()
    left = [0.0] * len(shown)
    for name, colour in _PARTS.items():
        widths = [_part(step, name) for step in shown]
        if any(widths):
            axes.barh(range(len(shown)), widths, left=left, color=colour, label=name, height=0.7)
            left = [begun + width for begun, width in zip(left, widths, strict=True)]
    spread = [[step.usual - step.fastest for step in shown], [step.slowest - step.usual for step in shown]]
    axes.errorbar(
        [step.usual for step in shown],
        range(len(shown)),
        xerr=[[max(0.0, one) for one in side] for side in spread],
        fmt="none",
        ecolor="black",
        capsize=3,
        linewidth=1,
    )
    axes.set_yticks(range(len(shown)), [str(step.layout) for step in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("seconds per step; the line goes from full overlap of messages to none")
    batch = f"{plan.job.tokens / 1e6:.3g}M tokens a step"
    axes.set_title(f"{plan.job.network.name} on {plan.cluster.gpus} x {plan.cluster.gpu.name}, {batch}")
    chart.legend(ncols=len(_PARTS), fontsize=8, loc="outside lower center")
    chart.savefig(path, dpi=120)


def _part(step: Step, name: str) -> float:
    """Seconds of one part of the step."""
    others = {COMPUTE: step.compute, BUBBLE: step.bubble, "optimizer": step.update}
    if name in others:
        return others[name]
    return step.waits[name].shown if name in step.waits else 0.0
