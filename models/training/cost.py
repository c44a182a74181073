"""The cost of findings for the job in the site file: its steps and checkpoints, in GPU-hours per day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ..catalog.gpus import product_of
from ..diagnosis.impact import COMPUTE, FABRIC, Impact
from ..facts.gpu import Gpu
from ..facts.machine import Pci
from ..inventory.snapshot import Snapshot
from ..report import Level, Range, Training
from .cluster import Cluster, cluster_of
from .job_spec import JobSpec
from .parallelism import Layout
from .planner import plan_of
from .step_time import Step

_HOURS = 24.0  # per day
_INSIDE = ("all_reduce", "alltoall")
_TENTH_OF_A_PERCENT = 3  # digits of a factor


class UnknownCost(ValueError):
    """A value that the cost needs and that is not known. Carries a sentence for the user."""


def cost_of(snapshot: Snapshot, spec: JobSpec, impact: Impact, levels: Iterable[Level]) -> Training:
    """The cost for a job over nodes like this one, of which only this one has the findings.

    Every GPU waits for the slowest, so one node slows all. The program decides how many messages overlap with compute:
    Range.least assumes more than usual, Range.most less (step_time.py). There is no range if the job cannot run, or if
    no factor is known. Raises UnknownCost.
    """
    layout, cluster = cluster_for(snapshot, spec)
    slowed = _slowed(cluster, impact.factors)
    try:
        well, ill = (plan_of(spec.job, layout, one) for one in (cluster, slowed))
    except ValueError as wrong:
        raise UnknownCost(str(wrong)) from None
    known = impact.cost in ("none", "slower")
    step = _range(well.step, ill.step) if known else None
    if step and "launch" in well.step.waits:
        step = replace(step, most=max(step.most, _with_graphs(spec, layout, cluster, slowed).most))
    before, now = _loading(spec, cluster, snapshot, levels)
    return Training(
        job=spec.text,
        gpus=cluster.gpus,
        step_seconds=round(well.step.usual, 4),
        slower=step,
        gpu_hours_a_day=round(cluster.gpus * _HOURS * (1 - 1 / step.usual), 1) if step else None,
        critical_tokens=_rounded(well.critical_tokens),
        critical_tokens_now=_rounded(ill.critical_tokens) if known else None,
        load_seconds=before,
        load_seconds_now=now,
    )


def _rounded(tokens: float | None) -> float | None:
    return None if tokens is None else round(tokens, 1)


def _loading(
    spec: JobSpec, cluster: Cluster, snapshot: Snapshot, levels: Iterable[Level]
) -> tuple[float | None, float | None]:
    """Seconds in which each node reads its part of a checkpoint from its disks: at the expected and at the measured
    rate.
    """
    disks = [
        level
        for level in levels
        if level.op == "read"
        and level.observed
        and level.expected
        and not level.beside
        and any(snapshot.topology.kind(end) in ("disk", "array", "nvme") for end in level.ends)
    ]
    if spec.checkpoint is None or not disks or snapshot.machine is None or not snapshot.machine.gpus:
        return None, None
    part = spec.checkpoint / (cluster.gpus / snapshot.machine.gpus)
    expected = sum(level.expected[0].typical for level in disks)
    return round(part / expected, 1), round(part / sum(level.observed or 0.0 for level in disks), 1)


def cluster_for(snapshot: Snapshot, spec: JobSpec) -> tuple[Layout, Cluster]:
    """The layout of a job and its cluster of nodes like this one. Raises UnknownCost."""
    machine = snapshot.machine
    if machine is None or not machine.gpus:
        raise UnknownCost("the machine type of this node is not known: describe it in the site file")
    fields = spec.fields
    degrees = (fields.get(name, 1) for name in ("tensor", "context", "pipeline", "data"))
    gpus = math.prod(degrees) if "data" in fields else machine.gpus
    try:
        layout = spec.layout(gpus)
        products = {product_of(gpu, snapshot.of(Pci)) for gpu in snapshot.of(Gpu).values()}
        product = products.pop() if len(products) == 1 else None
        cluster = cluster_of(machine, max(1, -(-layout.gpus // machine.gpus)), gpu=product)
    except ValueError as wrong:
        raise UnknownCost(str(wrong)) from None
    if layout.gpus != cluster.gpus:
        raise UnknownCost(f"its {layout.gpus} GPUs do not fill whole nodes of {machine.gpus} GPUs")
    return layout, cluster


def _slowed(cluster: Cluster, slower: Mapping[str, float]) -> Cluster:
    """The cluster with links slowed by the same factor as the collectives over them, and its GPUs as the slowest."""
    inside = max((slower.get(name, 1.0) for name in _INSIDE), default=1.0)
    across = max(slower.get(FABRIC, 1.0), 1.0)
    levels = tuple(
        replace(level, rate=level.rate / (inside if level.name == cluster.inside else across))
        for level in cluster.levels
    )
    return replace(cluster, levels=levels, reached=cluster.reached / slower.get(COMPUTE, 1.0))


def _with_graphs(spec: JobSpec, layout: Layout, cluster: Cluster, slowed: Cluster) -> Range:
    """The factors if CUDA graphs launch the step. A job that waits for the host hides slow links, and many jobs that
    use graphs do not say so.
    """
    quick = replace(layout, graphs="step")
    return _range(*(plan_of(spec.job, quick, one).step for one in (cluster, slowed)))


def _range(well: Step, ill: Step) -> Range:
    """Slowdown factors, at least 1."""
    factors = sorted(
        max(1.0, after / before)
        for before, after in ((well.fastest, ill.fastest), (well.usual, ill.usual), (well.slowest, ill.slowest))
    )
    usual = max(1.0, ill.usual / well.usual)
    return Range(*(round(factor, _TENTH_OF_A_PERCENT) for factor in (factors[0], usual, factors[-1])))
