"""Time of a training step: compute, waits for messages, and their bounds.

message_times.py gives the total message time of each kind of parallelism. The program decides how much of it overlaps
with compute. `usual` assumes the overlap of Megatron-LM and FSDP (Narayanan and others, 2021; Korthikanti and others,
2022): gradients during the last backward pass, sharded weights during the neighbouring layers, and messages between
stages. Tensor and expert messages do not overlap: the next product needs them. Keys and values of other context ranks
arrive during the attention to those before (Liu and others, "Ring Attention", 2023). DualPipe computes another
micro-batch during expert messages (DeepSeek-V3 technical report, 3.2.1), and so does `overlap`. `fastest` and
`slowest` have faster and slower compute, and more and less overlap: five of six of the fitted runs are between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..bandwidth.message_times import Pace, pace_of, seconds
from ..bandwidth.network_tiers import group
from ..site.schema import Network
from . import transformer_sizes as sizes
from .cluster import Cluster
from .expert_messages import exchange
from .memory import Memory, memory_of
from .parallelism import Job, Layout
from .roofline import BF16, bubble, zero_bubble
from .stage_compute import launches, matrix_products, other_operations, passed_layers

# _SHOWN of the time of gathered weights, and of messages to experts beside compute, is not hidden even behind enough
# compute, because the messages take compute units and memory from it.
_SHOWN = 0.3
# Five of six of the fitted runs are between compute faster by SPREAD with _VARIES of the waiting time hidden, and
# compute slower by SPREAD with _VARIES of the hidden time waited for.
SPREAD = 1.22
_VARIES = 0.3
_OPTIMIZER = 28  # bytes read and written per parameter: 12 of states both ways, gradient, weight
_BACKWARD = 2 / 3  # share of the backward pass in both passes
_OUTSIDE = ("pipeline", "data")  # messages that no bubble makes longer

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
    moved: float  # of compute: operations outside matrix products, at the rate of the memory and not of the clock
    bubble: float  # idle time of stages during the first and last micro-batch, at `usual`
    waits: Mapping[str, Wait] = field(default_factory=dict)  # tensor, context, expert, pipeline, data
    update: float = 0.0  # of the optimizer
    fastest: float = 0.0
    usual: float = 0.0
    slowest: float = 0.0
    utilisation: float = 0.0  # share of the data sheet's compute rate in its precision, at `usual`
    memory: Memory = Memory(0.0, 0.0)


def step_of(job: Job, layout: Layout, cluster: Cluster, paces: Paces | None = None) -> Step:
    """The step of a possible layout. `paces` caches the timing of GPU groups between calls for one cluster."""
    known = {} if paces is None else paces
    compute = matrix_products(job, layout, cluster) + (moved := other_operations(job, layout, cluster))
    times = {
        "tensor": _tensor(job, layout, cluster, known),
        "context": _context(job, layout, cluster, known),
        "expert": _expert(job, layout, cluster, known),
        "pipeline": _pipeline(job, layout, cluster, known),
        "data": _data(job, layout, cluster, known),
    }
    launch = launches(job, layout)
    hidden = _hidden(job, layout, max(compute, launch), {name: took for name, (took, _) in times.items()})
    waits = {
        name: Wait(took, max(0.0, took - hidden.get(name, 0.0)), held)
        for name, (took, held) in times.items()
        if took > 0
    }
    update = _OPTIMIZER * _own_parameters(job, layout) / (cluster.gpu.memory_rate or math.inf)
    idle = _idle(layout, layout.micro_batches(job), job.network)
    inside = compute + sum(wait.shown for name, wait in waits.items() if name not in _OUTSIDE)
    usual = _before_update(compute, waits, idle, launch) + update
    work = 3 * sizes.forward_flops(job.network, job.sequence) * job.tokens
    return Step(
        layout=layout,
        compute=compute,
        moved=moved,
        bubble=max(inside, launch) * idle,
        waits={**waits, "launch": Wait(launch, launch - inside, "host")} if launch > inside else waits,
        update=update,
        fastest=_before_update(compute / SPREAD, waits, idle, launch / SPREAD, waited=1 - _VARIES) + update,
        usual=usual,
        slowest=_before_update(compute * SPREAD, waits, idle, launch * SPREAD, hidden=_VARIES) + update,
        utilisation=work / (layout.gpus * cluster.peak(layout.precision) * usual),
        memory=memory_of(job, layout),
    )


def _before_update(
    compute: float,
    waits: Mapping[str, Wait],
    idle: float,
    launch: float,
    waited: float = 1.0,
    hidden: float = 0.0,
) -> float:
    """Seconds with these shares of the usual waits, and of the time of messages that usually is hidden. The slower of
    the GPU and of the host, which launches its kernels, counts.
    """
    inside, outside = compute, 0.0
    for name, wait in waits.items():
        took = waited * wait.shown + hidden * (wait.seconds - wait.shown)
        if name in _OUTSIDE:
            outside += took
        else:
            inside += took
    return max(inside, launch) * (1 + idle) + outside


def _idle(layout: Layout, batches: int, network: Network) -> float:
    """The time in which a stage has no micro-batch, relative to its busy time."""
    if layout.schedule == "1f1b":
        idle = bubble(layout.pipeline, batches, layout.interleave)
    else:
        backward = 2.0 + layout.repeated(network)
        idle = zero_bubble(layout.pipeline, batches, backward, layout.schedule == "dualpipe")
    return idle / (1 - idle)


def _hidden(job: Job, layout: Layout, compute: float, times: Mapping[str, float]) -> dict[str, float]:
    """Seconds that overlap with compute, or with the host's launches if these take longer: first messages between
    stages, then gradients and weights.

    Unsharded gradients, or those reduced once per step, are ready in the last backward pass.
    """
    during = compute - times["pipeline"] if layout.schedule == "dualpipe" or layout.overlap else 0.0
    expert = min((1 - _SHOWN * layout.overlap) * times["expert"], max(0.0, during))
    left = max(0.0, compute - times["pipeline"] - expert)
    attention = sizes.attention_flops(job.network, job.sequence) / sizes.forward_flops(job.network, job.sequence)
    sharded = layout.zero == 3
    data = min(left, (1 - _SHOWN) * times["data"]) if sharded else _BACKWARD * left / layout.micro_batches(job)
    return {
        "pipeline": compute,
        "expert": expert,
        "context": compute * attention * (layout.context - 1) / layout.context,
        "data": data,
    }


def _tensor(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """AllReduces of a layer's activations, forward and backward: of the attention, and of a feed-forward block that the
    tensor ranks share (Shoeybi and others, "Megatron-LM", 2019).
    """
    pace = _pace("all_reduce", layout.tensor, 1, cluster, paces)
    size = BF16 * layout.tokens(job) * job.network.width
    apart = sizes.expert_layers(job.network) / job.network.layers if layout.expert > 1 else 0.0
    times = passed_layers(job, layout) * (2 - apart) * (2 + layout.repeated(job.network))
    return times * seconds(pace, size), pace.held


def _context(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Keys and values to all context ranks, forward; backward again, and their gradients back. A ring moves as much as
    an AllGather and a ReduceScatter (LLaMA-3, 3.3.2).
    """
    if layout.context == 1:
        return 0.0, ""
    pace = _pace("all_gather", layout.context, layout.tensor, cluster, paces)
    numbers = 2 * job.network.kv_heads * job.network.head
    size = BF16 * numbers * layout.micro * job.sequence / layout.tensor
    return passed_layers(job, layout) * (3 + layout.repeated(job.network)) * seconds(pace, size), pace.held


def _expert(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """To the experts' GPUs and back, forward and backward."""
    network = job.network
    if layout.expert == 1 or not network.experts:
        return 0.0, ""

    def pace(ranks: int) -> Pace:
        return _pace("alltoall", ranks, 1, cluster, paces)

    took, held = exchange(job, layout, cluster, pace)
    share = sizes.expert_layers(network) / network.layers
    return passed_layers(job, layout) * share * (4 + 2 * layout.repeated(network)) * took, held


def _pipeline(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Activations between stages, forward and backward, for each part of the model."""
    if layout.pipeline == 1:
        return 0.0, ""
    pace = _pace("sendrecv", layout.pipeline, layout.gpus // layout.pipeline, cluster, paces)
    size = BF16 * layout.tokens(job) * job.network.width / layout.tensor
    hops = layout.micro_batches(job) * layout.interleave + layout.pipeline - 2
    return 2 * hops * seconds(pace, size), pace.held


def _data(job: Job, layout: Layout, cluster: Cluster, paces: Paces) -> tuple[float, str]:
    """Gradients once per step (ZeRO 0 and 1) or per micro-batch (2), and weights per layer (3)."""
    network = job.network
    part = layout.copies * math.ceil(network.layers / layout.pipeline) / network.layers
    ends = sizes.embedding(network) / layout.tensor
    dense = BF16 * (sizes.outside_experts(network) * part / layout.tensor + ends)
    shards = layout.expert_shards
    expert = BF16 * sizes.in_experts(network) * part / shards
    groups = [(dense, layout.replicas, layout.tensor), (expert, layout.replicas * layout.tensor // shards, shards)]
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
    return every / (layout.data * layout.context) if layout.zero else every * layout.copies


def _pace(op: str, ranks: int, stride: int, cluster: Cluster, paces: Paces) -> Pace:
    key = (op, ranks, stride)
    if key not in paces:
        seen = group(cluster.levels, ranks, stride)
        across = any(one.name != cluster.inside for one in seen)
        pace = pace_of(op, seen, cluster.algorithms, cluster.inside, cluster.switched)
        paces[key] = replace(pace, measured=cluster.measured.get((op, across), ()))
    return paces[key]
