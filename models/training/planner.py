"""Possible layouts of a job on a cluster, what limits each, and which is fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from . import transformer_sizes as sizes
from .cluster import Cluster
from .layouts import COARSE, FINE, layouts
from .memory import USABLE, check_memory, memory_of
from .parallelism import FLAGS, SHORT_NAMES, Impossible, Job, Layout, Value, check
from .roofline import state_bytes, tensor_limit
from .step_time import Paces, Step, step_of

_SHORT = {name: short for short, name in SHORT_NAMES.items()}
COMPUTE, BUBBLE = "compute", "bubble"
_EACH_MICRO_BATCH = 2  # ZeRO stages from here on exchange gradients in each micro-batch
_NOTHING = 0.05  # share of a step; if all waits are shorter, compute is the limit
_MOST = 25_000  # layouts; takes 1.2 s


class Plan(Struct, frozen=True):
    """A layout on a cluster, with its limit."""

    job: Job
    cluster: Cluster
    step: Step
    binds: str  # the limit: compute, tensor, context, expert, pipeline, data, launch or bubble
    waits: float  # share of the step for the limit
    tokens: float  # per GPU and step
    exchanged: float  # tokens per GPU between two exchanges of gradients: the step; with zero=2 or 3 a micro-batch
    critical_tokens: float | None  # of these; below it, gradients and weights take longer than compute
    tensor_limit: float  # tensor degree above which messages take longer than compute, with the level's own links


class Sweep(Struct, frozen=True):
    """The fastest layouts, the number of tried layouts, and the number that fit into memory."""

    best: tuple[Step, ...]
    tried: int
    fit: int


def plan_of(job: Job, layout: Layout, cluster: Cluster) -> Plan:
    """The plan of one layout. Impossible: the constraint that it breaks."""
    check(job, layout, cluster.gpus)
    _check_precision(layout.precision, cluster)
    check_memory(memory_of(job, layout), cluster)
    step = step_of(job, layout, cluster)
    what, waits = binding(step)
    tokens = job.tokens / cluster.gpus
    exchanged = tokens / (layout.micro_batches(job) if layout.zero >= _EACH_MICRO_BATCH else 1)
    data = step.waits.get("data")
    inner = cluster.levels[0]
    return Plan(
        job=job,
        cluster=cluster,
        step=step,
        binds=what,
        waits=waits,
        tokens=tokens,
        exchanged=exchanged,
        critical_tokens=exchanged * data.seconds / step.compute if data else None,
        tensor_limit=tensor_limit(
            sizes.used_width(job.network),
            cluster.reached * cluster.peak(layout.precision) / cluster.flops,
            inner.rate * cluster.algorithms.near["all_reduce"].share,
        ),
    )


def _check_precision(precision: str, cluster: Cluster) -> None:
    """Raise Impossible if the GPUs have no such products."""
    if precision != "bf16" and precision not in cluster.low:
        known = ", ".join(("bf16", *cluster.low))
        raise Impossible(f"{cluster.gpu.name} has no rate in {precision}: it has {known}, so leave {precision} out")


def binding(step: Step) -> tuple[str, float]:
    """The longest wait of a step and its share of the step; compute if no wait is significant. If the GPU waits for
    the host, shorter messages save nothing.
    """
    waits = {name: wait.shown for name, wait in step.waits.items()}
    waits[BUBBLE] = step.bubble
    name = "launch" if waits.get("launch", 0.0) >= _NOTHING * step.usual else max(waits, key=lambda one: waits[one])
    if waits[name] < _NOTHING * step.usual:
        return COMPUTE, step.compute / step.usual
    return name, waits[name] / step.usual


def sweep(
    job: Job,
    cluster: Cluster,
    best: int = 10,
    most: int = _MOST,
    fixed: Mapping[str, Value] | None = None,
) -> Sweep:
    """Try all layouts, with fewer values if there are more than `most`. `fixed`: fields of Layout that have one value.
    Impossible: no layout exists or fits.
    """
    _check_precision(str((fixed or {}).get("precision", "bf16")), cluster)
    found = list(layouts(job, cluster, FINE, fixed)) if most else []
    if not 0 < len(found) <= most:
        found = list(layouts(job, cluster, COARSE, fixed))
    if not found and fixed:
        words = [word for word, pair in FLAGS.items() if pair in fixed.items()]
        numbers = [f"{_SHORT[name]}={value}" for name, value in fixed.items() if name in _SHORT]
        shown = ",".join([*numbers, *words])
        raise Impossible(f"no layout of {job.network.name} on {cluster.gpus} GPUs has {shown}: fix fewer degrees")
    if not found:
        raise Impossible(
            f"no layout divides {cluster.gpus} GPUs, {job.network.heads} heads and {job.sequences} sequences of "
            f"{job.sequence} tokens: change the number of nodes or tokens"
        )
    paces: Paces = {}
    usable = USABLE * cluster.memory
    every = (step_of(job, one, cluster, paces) for one in found)
    steps = [step for step in every if step.memory.total <= usable]
    if not steps:
        raise Impossible(
            f"memory: none of {len(found)} layouts of {job.network.name} fits into {cluster.gpus} x "
            f"{cluster.gpu.name}: more nodes, or shorter sequences; weights, gradients and optimizer alone need "
            f"{math.ceil(state_bytes(sizes.parameters(job.network), 1, 0) / usable)} GPUs"
        )
    steps.sort(key=lambda one: one.usual)
    return Sweep(tuple(steps[:best]), len(found), len(steps))


def other(job: Job, cluster: Cluster, than: Step) -> Step | None:
    """The fastest layout with as many GPUs that is faster and waits less; None if there is none."""
    try:
        found = sweep(job, cluster, best=1, most=0, fixed=_program(than.layout)).best[0]
    except Impossible:
        return None
    return found if found.usual < 0.99 * than.usual else None


def _program(layout: Layout) -> dict[str, Value]:
    """What the program that trains decides: precision, schedule, dispatch, launches."""
    usual = Layout()
    names = ("precision", "schedule", "per_node", "vocabulary", "overlap", "graphs", "fused")
    return {name: getattr(layout, name) for name in names if getattr(layout, name) != getattr(usual, name)}


def training_seconds(job: Job, step: Step, tokens: float) -> float:
    """Seconds of a whole training with `tokens` tokens at `usual`, without failures."""
    return tokens / job.tokens * step.usual
