"""Memory that a training needs on each GPU, in bytes."""

from __future__ import annotations

import math

from msgspec import Struct

from . import transformer_sizes as sizes
from .cluster import Cluster
from .parallelism import Impossible, Job, Layout
from .roofline import state_bytes

# Assumed, not measured: the rest is for the driver, the context, NCCL's buffers and fragmentation.
USABLE = 0.94
_LOGITS = 6  # bytes per logit: bf16, and fp32 for the loss


class Memory(Struct, frozen=True):
    """Bytes on the GPU with the highest need: states (weights, gradients, optimizer) and stored activations."""

    states: float
    activations: float

    @property
    def total(self) -> float:
        """States and activations."""
        return self.states + self.activations


def memory_of(job: Job, layout: Layout) -> Memory:
    """With bf16 weights and gradients, Adam in fp32, and sequence parallelism within the tensor-parallel group.

    DualPipe stores the weights and gradients of two stages (DeepSeek-V3 technical report, table 2).
    """
    network = job.network
    layers = math.ceil(network.layers / layout.pipeline)
    part = layers / network.layers
    ends = (1 if layout.pipeline > 1 or network.tied else 2) * sizes.embedding(network) / layout.tensor
    dense = sizes.outside_experts(network) * part / layout.tensor + ends
    experts = sizes.in_experts(network) * part / layout.expert_shards
    replicas, copies = layout.replicas, layout.copies
    states = state_bytes(copies * dense, replicas, layout.zero)
    states += state_bytes(copies * experts, max(1, replicas * layout.tensor // layout.expert_shards), layout.zero)
    return Memory(states, _activations(job, layout, layers))


def _activations(job: Job, layout: Layout, layers: int) -> float:
    """The first stage stores as many micro-batches as there are stages, one more with DualPipe. The last stage stores
    logits once, unless all stages share the vocabulary.
    """
    network = job.network
    tokens = layout.tokens(job) / layout.tensor
    again, stored = layout.repeated(network), sizes.activation_bytes(network)
    each = again * 2 * network.width + (1 - again) * stored
    begun = min(layout.micro_batches(job), layout.pipeline + layout.copies - 1)
    more = 1 + (layout.pipeline - 1) / (layout.pipeline * layout.interleave) if layout.interleave > 1 else 1.0
    working = stored if layout.recompute else 0.0  # of the one layer that is recomputed
    first = tokens * (each * layers * begun * more + working)
    logits = _LOGITS * network.vocabulary / (layout.pipeline if layout.vocabulary else 1)
    last = tokens * (each * layers + working + logits)
    return last if layout.pipeline == 1 else max(first, last)


def check_memory(need: Memory, cluster: Cluster) -> None:
    """Raise Impossible if the GPU's memory is too small."""
    usable = USABLE * cluster.memory
    if need.total > usable:
        activations = f"{need.activations / 1e9:.0f} of activations"
        raise Impossible(
            f"memory: {need.total / 1e9:.0f} GB on each GPU "
            f"({need.states / 1e9:.0f} of weights, gradients and optimizer, {activations}); "
            f"{cluster.gpu.name} has {usable / 1e9:.0f} to use: more tp, pp or zero, or recompute; "
            "--sweep tries all layouts"
        )
