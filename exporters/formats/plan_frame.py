"""Plans and sweeps as pandas tables."""

from __future__ import annotations

from typing import Any

import pandas

from ...models.training.planner import BUBBLE, COMPUTE, Plan, Sweep, binding
from ...models.training.step_time import Step


def as_frame(found: Plan | Sweep) -> Any:
    """A pandas.DataFrame in seconds, bytes and shares: rows are the parts of a plan, or the layouts of a sweep."""
    return pandas.DataFrame(_parts(found.step) if isinstance(found, Plan) else [_row(step) for step in found.best])


def _parts(step: Step) -> list[dict[str, object]]:
    """One row per part of the step."""
    rows: list[dict[str, object]] = [{"part": COMPUTE, "seconds": step.compute, "waited": step.compute, "held_by": ""}]
    rows += [
        {"part": name, "seconds": wait.seconds, "waited": wait.shown, "held_by": wait.held}
        for name, wait in step.waits.items()
    ]
    rows += [
        {"part": name, "seconds": took, "waited": took, "held_by": ""}
        for name, took in ((BUBBLE, step.bubble), ("optimizer", step.update))
    ]
    return [{**row, "share": float(str(row["waited"])) / step.usual} for row in rows]


def _row(step: Step) -> dict[str, object]:
    layout = step.layout
    what, share = binding(step)
    return {
        **{name: getattr(layout, name) for name in layout.__struct_fields__},
        "seconds": step.usual,
        "fastest": step.fastest,
        "slowest": step.slowest,
        "utilisation": step.utilisation,
        "memory": step.memory.total,
        "binds": what,
        "waits": share,
        **{
            f"waited_{name}": step.waits[name].shown if name in step.waits else 0.0
            for name in ("tensor", "context", "expert", "pipeline", "data", "launch")
        },
        f"waited_{BUBBLE}": step.bubble,
        COMPUTE: step.compute,
    }
