"""Time of the slowest stage without messages: matrix products, other operations, and the host's launches of kernels.

A GPU waits for the host if a micro-batch has little work: published runs of mixtures with one sequence of 4096 tokens
take 8 to 13 ms for a layer, on H100 and on B200, in bf16 and in fp8, with a width of 2048 and of 4096 (Megatron-LM,
examples/moe_recipes; NVIDIA-NeMo/Megatron-Bridge, pull request 1760).
"""

from __future__ import annotations

import math

from . import transformer_sizes as sizes
from .cluster import Cluster
from .parallelism import Job, Layout
from .roofline import BF16

# Fitted to published runs (bench/accuracy/plan.py and training_runs.py, without the sources held back): matrix
# products in a model run at EFFICIENCY of the best rate; the other operations (norms, activations, routing) move _MOVED
# times the stored activations through memory, and mixtures of many small experts spend a third of their time there; the
# host needs _LAUNCH seconds to launch the kernels of a layer with experts, forward and backward.
EFFICIENCY = 0.83
_MOVED = 32
_LAUNCH = 8e-3


def matrix_products(job: Job, layout: Layout, cluster: Cluster) -> float:
    """Matrix products, on the stage with most work. At least the time to read its weights for each micro-batch."""
    network = job.network
    passes = 3 + layout.repeated(network)
    each = sizes.forward_flops(network, job.sequence)
    work = passes * each * job.tokens / layout.gpus * _largest_stage(job, layout)
    low = 2 * (sizes.active_parameters(network) - sizes.embedding(network)) / each
    saved = low * (1 - cluster.flops / cluster.peak(layout.precision))  # what slows products stays as it is
    weights = sizes.outside_experts(network) + sizes.in_experts(network) / layout.expert
    read = passes * BF16 * weights * _uneven(job, layout) / layout.pipeline / layout.tensor * layout.micro_batches(job)
    return max(work / cluster.reached * (1 / EFFICIENCY - saved), read / (cluster.gpu.memory_rate or math.inf))


def other_operations(job: Job, layout: Layout, cluster: Cluster) -> float:
    """Operations outside matrix products: the stored activations, moved several times through memory."""
    passes = 3 + layout.repeated(job.network)
    stored = sizes.activation_bytes(job.network) * job.network.layers * job.tokens / layout.gpus * _uneven(job, layout)
    return passes / 3 * _MOVED * stored / (cluster.gpu.memory_rate or math.inf)


def launches(job: Job, layout: Layout) -> float:
    """Seconds in which the host launches the kernels of layers with experts. The GPU waits for it if it is faster."""
    if layout.graphs or not job.network.experts:
        return 0.0
    passes = (3 + layout.repeated(job.network)) / 3
    return _LAUNCH * passes * passed_layers(job, layout) * sizes.expert_layers(job.network) / job.network.layers


def passed_layers(job: Job, layout: Layout) -> float:
    """Layers of the largest stage, times its micro-batches."""
    return math.ceil(job.network.layers / layout.pipeline) * layout.micro_batches(job)


def _uneven(job: Job, layout: Layout) -> float:
    """Layers of the largest stage, relative to the mean."""
    return math.ceil(job.network.layers / layout.pipeline) * layout.pipeline / job.network.layers


def _largest_stage(job: Job, layout: Layout) -> float:
    """Work of the stage with most of it, relative to the mean. The last stage has the output matrix, and layers less
    if they do not divide (Yeung and others, "Balancing Pipeline Parallelism with Vocabulary Parallelism", 2024).
    """
    whole, output = sizes.forward_flops(job.network, job.sequence), 2 * sizes.embedding(job.network)
    layer = (whole - output) / job.network.layers
    most = math.ceil(job.network.layers / layout.pipeline)
    first = most * layer + output / layout.pipeline
    if layout.pipeline == 1 or layout.vocabulary:
        return first * layout.pipeline / whole
    last = max(0, most - (most * layout.pipeline - job.network.layers)) * layer + output
    return max(first, last) * layout.pipeline / whole
