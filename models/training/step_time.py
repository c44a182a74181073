"""Time of a training step: compute, waits for messages, and their bounds.

message_times.py gives the total message time of each kind of parallelism. The program decides how much of it overlaps
with compute, so there are three results. `fastest` assumes all possible overlap, `slowest` assumes none. `usual`
assumes the overlap of Megatron-LM and FSDP (Narayanan and others, 2021; Korthikanti and others, 2022): gradients during
the last backward pass, sharded weights during the neighbouring layers, and messages between stages. Tensor and expert
messages do not overlap: the next product needs them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..bandwidth.collectives import distinct
from ..bandwidth.message_times import Pace, pace_of, seconds
from ..bandwidth.network_tiers import group
from . import transformer_sizes as sizes
from .cluster import Cluster
from .memory import Memory, memory_of
from .parallelism import Job, Layout
from .roofline import BF16, bubble

# Compute rate of whole layers relative to matrix products: attention, norms and launches take the rest. The median of
# published runs, fitted by bench/accuracy/plan.py.
EFFICIENCY = 0.70
_OPTIMIZER = 28  # bytes read and written per parameter: 12 of states both ways, gradient, weight
_BACKWARD = 2 / 3  # share of the backward pass in both passes

Paces = dict[tuple[str, int, int], Pace]


class Wait(Struct, frozen=True):
    """All messages of one kind of parallelism in a step: total seconds, seconds without overlap, limiting level."""

    seconds: float
    shown: float
    held: str


class Step(Struct, frozen=True):
    """One step of a job on a cluster. Times in seconds."""

    layout: Layout
    compute: float
    bubble: float  # idle time of stages during the first and last micro-batch, at `usual`
    waits: Mapping[str, Wait] = field(default_factory=dict)  # tensor, expert, pipeline, data
    update: float = 0.0  # of the optimizer
    fastest: float = 0.0
    usual: float = 0.0
    slowest: float = 0.0
    utilisation: float = 0.0  # share of the data sheet's compute rate, at `usual`
    memory: Memory = Memory(0.0, 0.0)


def step_of(job: Job, layout: Layout, cluster: Cluster, paces: Paces | None = None) -> Step:
    """The step of a possible layout. `paces` caches the timing of GPU groups between calls for one cluster."""
    known = {} if paces is None else paces
    batches = layout.micro_batches(job)
    compute = _compute(job, layout, cluster)
    times = {
        "tensor": _tensor(job, layout, cluster, known),
        "expert": _expert(job, layout, cluster, known),
        "pipeline": _pipeline(job, layout, cluster, known),
        "data": _data(job, layout, cluster, known),
    }
    hidden = _hidden(layout, batches, compute, times["pipeline"][0])
    waits = {
        name: Wait(took, max(0.0, took - hidden.get(name, 0.0)), held)
        for name, (took, held) in times.items()
        if took > 0
    }
    update = _OPTIMIZER * _own_parameters(job, layout) / (cluster.gpu.memory_rate or math.inf)
    idle = bubble(layout.pipeline, batches, layout.interleave)
    idle /= 1 - idle  # relative to the busy time of the stages
    inside = compute + sum(waits[name].shown for name in ("tensor", "expert") if name in waits)
    outside = sum(waits[name].shown for name in ("pipeline", "data") if name in waits)
    usual = inside * (1 + idle) + outside + update
    every = sum(wait.seconds for wait in waits.values())
    levels = {wait.held for wait in waits.values()}
    busiest = max((sum(wait.seconds for wait in waits.values() if wait.held == level) for level in levels), default=0.0)
    data = waits["data"].seconds if "data" in waits else 0.0
    work = 3 * sizes.forward_flops(job.network, job.sequence) * job.tokens
    return Step(
        layout=layout,
        compute=compute,
        bubble=inside * idle,
        waits=waits,
        update=update,
        fastest=max(compute, busiest) + compute * idle + update,
        usual=usual,
        slowest=(compute + every - data) * (1 + idle) + data + update,
        utilisation=work / (layout.gpus * cluster.flops * usual),
        memory=memory_of(job, layout),
    )


def _hidden(layout: Layout, batches: int, compute: float, between: float) -> dict[str, float]:
    """Seconds that overlap with compute: first messages between stages, then gradients and weights.

    Unsharded gradients, or those reduced once per step, are ready in the last backward pass.
    """
    left = max(0.0, compute - between)
    return {"pipeline": compute, "data": left if layout.zero == 3 else _BACKWARD * left / batches}


def _compute(job: Job, layout: Layout, cluster: Cluster) -> float:
    """On the stage with most layers. At least the time to read its weights from memory for each micro-batch."""
    passes = 4 if layout.recompute else 3
    uneven = math.ceil(job.network.layers / layout.pipeline) * layout.pipeline / job.network.layers
    work = passes * sizes.forward_flops(job.network, job.sequence) * job.tokens / layout.gpus * uneven
    weights = sizes.outside_experts(job.network) + sizes.in_experts(job.network) / layout.expert
    read = passes * BF16 * weights * uneven / (layout.tensor * layout.pipeline) * layout.micro_batches(job)
    return max(work / (EFFICIENCY * cluster.reached), read / (cluster.gpu.memory_rate or math.inf))


def _layers(job: Job, layout: Layout) -> float:
    """Layers of the largest stage, times its micro-batches."""
    return math.ceil(job.network.layers / layout.pipeline) * layout.micro_batches(job)


def _tensor(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Two AllReduces of a layer's activations, forward and backward (Shoeybi and others, "Megatron-LM", 2019)."""
    pace = _pace("all_reduce", layout.tensor, 1, cluster, paces)
    size = BF16 * layout.micro * job.sequence * job.network.width
    return _layers(job, layout) * (6 if layout.recompute else 4) * seconds(pace, size), pace.held


def _expert(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """To the experts' GPUs and back, forward and backward. A GPU with several experts of a token receives it once."""
    network = job.network
    if layout.expert == 1 or not network.experts:
        return 0.0, ""
    pace = _pace("alltoall", layout.expert, layout.tensor, cluster, paces)
    sent = layout.expert * distinct(network.active, layout.expert) * layout.expert / (layout.expert - 1)
    size = layout.expert * BF16 * layout.micro * job.sequence * network.width * sent / layout.tensor
    share = sizes.expert_layers(network) / network.layers
    return _layers(job, layout) * share * (6 if layout.recompute else 4) * seconds(pace, size), pace.held


def _pipeline(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Activations between stages, forward and backward, for each part of the model."""
    if layout.pipeline == 1:
        return 0.0, ""
    pace = _pace("sendrecv", layout.pipeline, layout.tensor * layout.data, cluster, paces)
    size = BF16 * layout.micro * job.sequence * job.network.width / layout.tensor
    hops = layout.micro_batches(job) * layout.interleave + layout.pipeline - 2
    return 2 * hops * seconds(pace, size), pace.held


def _data(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Gradients once per step (ZeRO 0 and 1) or per micro-batch (2), and weights per layer (3)."""
    network = job.network
    part = math.ceil(network.layers / layout.pipeline) / network.layers / layout.tensor
    ends = sizes.embedding(network) / layout.tensor
    dense = BF16 * (sizes.outside_experts(network) * part + ends)
    expert = BF16 * sizes.in_experts(network) * part / layout.expert
    copies = layout.data // layout.expert
    groups = [(dense, layout.data, layout.tensor), (expert, copies, layout.tensor * layout.expert)]
    found = [_sharded(size, ranks, stride, layout, job, cluster, paces) for size, ranks, stride in groups if size]
    return sum(took for took, _ in found), max(found)[1]


def _sharded(
    size: float, ranks: int, stride: int, layout: Layout, job: Job, cluster: Cluster, paces: Paces
) -> tuple[float, str]:
    if ranks == 1:
        return 0.0, ""
    whole = _pace("all_reduce", ranks, stride, cluster, paces)
    if layout.zero == 0:
        return seconds(whole, size), whole.held
    half = _pace("all_gather", ranks, stride, cluster, paces)
    batches = layout.micro_batches(job)
    if layout.zero == 3:  # weights are gathered per layer and pass; gradients are scattered per layer
        layers = math.ceil(job.network.layers / layout.pipeline)
        return 3 * batches * layers * seconds(half, size / layers), half.held
    once = seconds(half, size)
    return once + (batches if layout.zero == 2 else 1) * once, half.held


def _own_parameters(job: Job, layout: Layout) -> float:
    """Parameters that one GPU's optimizer updates."""
    every = sizes.parameters(job.network) / (layout.tensor * layout.pipeline)
    return every / layout.data if layout.zero else every


def _pace(op: str, ranks: int, stride: int, cluster: Cluster, paces: Paces) -> Pace:
    key = (op, ranks, stride)
    if key not in paces:
        seen = group(cluster.levels, ranks, stride)
        across = any(one.name != cluster.inside for one in seen)
        pace = pace_of(op, seen, cluster.algorithms, cluster.inside, cluster.switched)
        paces[key] = replace(pace, measured=cluster.measured.get((op, across), ()))
    return paces[key]
