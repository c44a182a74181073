"""Plans and sweeps as a picture: what each layout's step is made of."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...models.training.planner import BUBBLE, COMPUTE, Plan
from ...models.training.step_time import Step

# Colours that can be told apart by people who see no red (Okabe and Ito).
_PARTS = {
    COMPUTE: "#0072B2",
    "tensor": "#E69F00",
    "expert": "#CC79A7",
    "data": "#D55E00",
    "pipeline": "#009E73",
    BUBBLE: "#BBBBBB",
    "optimizer": "#56B4E9",
}
_MOST = 30  # layouts that can be read on one picture


def draw(plan: Plan, steps: Sequence[Step], path: str) -> None:
    """Write a bar for each layout, fastest first, and a line from fastest to slowest. OSError: it cannot be written."""
    shown = list(steps[:_MOST])
    figure = Figure(figsize=(10, 1.8 + 0.38 * len(shown)), layout="constrained")
    axes = figure.subplots()
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
    axes.set_xlabel("seconds a step; the line reaches from all messages hidden to none")
    batch = f"{plan.job.tokens / 1e6:.3g}M tokens a step"
    axes.set_title(f"{plan.job.network.name} on {plan.cluster.gpus} x {plan.cluster.gpu.name}, {batch}")
    figure.legend(ncols=len(_PARTS), fontsize=8, loc="outside lower center")
    figure.savefig(path, dpi=120)


def _part(step: Step, name: str) -> float:
    """Seconds of the step that one thing takes."""
    others = {COMPUTE: step.compute, BUBBLE: step.bubble, "optimizer": step.update}
    if name in others:
        return others[name]
    return step.waits[name].shown if name in step.waits else 0.0
