"""Possible layouts of a job on a cluster, what limits each, and which is fastest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from . import transformer_sizes as sizes
from .cluster import Cluster
from .memory import USABLE, check_memory, memory_of
from .parallelism import SHORT_NAMES, Impossible, Job, Layout, check, divides_stages
from .roofline import tensor_limit
from .step_time import Paces, Step, step_of

_DEGREES = ("tensor", "pipeline", "data", "expert")
_SHORT = {name: short for short, name in SHORT_NAMES.items()}
COMPUTE, BUBBLE = "compute", "bubble"
_EACH_MICRO_BATCH = 2  # ZeRO stages from here on exchange gradients in each micro-batch
_NOTHING = 0.05  # share of a step; if all waits are shorter, compute is the limit
# Values that a sweep tries, and the fewer values for large sweeps: micro-batches, parts per stage, ZeRO stages.
_FINE = ((1, 2, 4, 8, 16), tuple(range(1, 9)), (0, 1, 2, 3))
_COARSE = ((1, 2, 4), (1, 2, 4, 8), (1, 3))
_MOST = 25_000  # layouts; takes 1.5 s


class Plan(Struct, frozen=True):
    """A layout on a cluster, with its limit."""

    job: Job
    cluster: Cluster
    step: Step
    binds: str  # the limit: compute, tensor, expert, pipeline, data or bubble
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
            cluster.reached,
            inner.rate * cluster.algorithms.near["all_reduce"].share,
        ),
    )


def binding(step: Step) -> tuple[str, float]:
    """The longest wait of a step and its share of the step; compute if no wait is significant."""
    waits = {name: wait.shown for name, wait in step.waits.items()}
    waits[BUBBLE] = step.bubble
    name = max(waits, key=lambda one: waits[one])
    if waits[name] < _NOTHING * step.usual:
        return COMPUTE, step.compute / step.usual
    return name, waits[name] / step.usual


def sweep(
    job: Job, cluster: Cluster, best: int = 10, most: int = _MOST, fixed: Mapping[str, int] | None = None
) -> Sweep:
    """Try all layouts, with fewer values if there are more than `most`. `fixed`: fields of Layout that have one value.
    Impossible: no layout exists or fits.
    """
    found = list(layouts(job, cluster, *_FINE, fixed)) if most else []
    if not 0 < len(found) <= most:
        found = list(layouts(job, cluster, *_COARSE, fixed))
    if not found and fixed:
        shown = ",".join(f"{_SHORT.get(name, name)}={value}" for name, value in fixed.items())
        raise Impossible(f"no layout of {job.network.name} on {cluster.gpus} GPUs has {shown}: fix fewer degrees")
    if not found:
        raise Impossible(
            f"no layout divides {cluster.gpus} GPUs, {job.network.heads} heads and {job.sequences} sequences of "
            f"{job.sequence} tokens: change the number of nodes or tokens"
        )
    paces: Paces = {}
    usable = USABLE * cluster.memory
    steps = [step_of(job, one, cluster, paces) for one in found if memory_of(job, one).total <= usable]
    if not steps:
        raise Impossible(
            f"memory: none of {len(found)} layouts of {job.network.name} fits into {cluster.gpus} x "
            f"{cluster.gpu.name}: more nodes, or shorter sequences"
        )
    steps.sort(key=lambda one: (one.usual, str(one.layout)))
    return Sweep(tuple(steps[:best]), len(found), len(steps))


def layouts(
    job: Job,
    cluster: Cluster,
    micros: Sequence[int] = _FINE[0],
    interleaves: Sequence[int] = _FINE[1],
    stages: Sequence[int] = _FINE[2],
    fixed: Mapping[str, int] | None = None,
) -> Iterator[Layout]:
    """All layouts that break no constraint and have the `fixed` values, with tensor groups inside a node only."""
    given = fixed or {}
    micros, interleaves, stages = (
        (given[name],) if name in given else usual
        for name, usual in (("micro", micros), ("interleave", interleaves), ("zero", stages))
    )
    again_or_not = (bool(given["recompute"]),) if "recompute" in given else (False, True)
    for shape in _shapes(job, cluster):
        if any(getattr(shape, name) != given[name] for name in _DEGREES if name in given):
            continue
        each = job.sequences // shape.data
        schedules = [
            one for one in interleaves if shape.pipeline > 1 and divides_stages(job.network, shape.pipeline, one)
        ]
        for micro, zero in product((one for one in micros if each % one == 0), stages if shape.data > 1 else (0,)):
            whole = each // micro % shape.pipeline == 0
            for interleave in [one for one in schedules if one == 1 or whole] or [1]:
                for again in again_or_not:
                    yield Layout(shape.tensor, shape.pipeline, shape.data, shape.expert, zero, micro, interleave, again)


def _shapes(job: Job, cluster: Cluster) -> Iterator[Layout]:
    """Layouts that differ only in their degrees of parallelism."""
    gpus, network = cluster.gpus, job.network
    for tensor in _divisors(math.gcd(gpus, network.heads)):
        if tensor > max(8, cluster.levels[0].children):
            return
        for pipeline in (one for one in _divisors(gpus // tensor) if one <= network.layers):
            data = gpus // tensor // pipeline
            if job.sequences % data == 0:
                for expert in _divisors(math.gcd(data, network.experts)) if network.experts else (1,):
                    yield Layout(tensor, pipeline, data, expert)


def _divisors(number: int) -> list[int]:
    """The divisors in ascending order."""
    small = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return small + [number // one for one in reversed(small) if one * one != number]


def other(job: Job, cluster: Cluster, than: Step) -> Step | None:
    """The fastest layout with as many GPUs that is faster and waits less; None if there is none."""
    try:
        found = sweep(job, cluster, best=1, most=0).best[0]
    except Impossible:
        return None
    return found if found.usual < 0.99 * than.usual else None


def training_seconds(job: Job, step: Step, tokens: float) -> float:
    """Seconds of a whole training with `tokens` tokens at `usual`, without failures."""
    return tokens / job.tokens * step.usual
