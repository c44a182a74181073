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

# Fitted to half of the sources of published runs (bench/accuracy/trainings/training_fit.py): matrix products in a model
# run at EFFICIENCY of the best rate; the other operations (norms, activations, routing) move _MOVED times the stored
# activations through memory, and _BIASES times as much if experts have biases; the host needs _LAUNCH seconds to launch
# the kernels of a layer with experts, forward and backward.
EFFICIENCY = 0.88
_MOVED = 36
_BIASES = 2.08
_LAUNCH = 12.2e-3
# From published runs that differ in one property. Parts of the host's time with CUDA graphs of attention and routing,
# and with kernels that sort and send the tokens (Megatron-LM, deepseek-v3-gb200-optimization); with messages during the
# compute of another micro-batch (Megatron-Bridge, pull request 1760). Quantizing makes other operations longer, and
# kernels that quantize inside make them shorter (Megatron-LM, examples/moe_recipes; Megatron-Bridge, 26.04 and 26.06).
_ATTENTION, _SENT, _SPLIT = 0.75, 0.7, 1.2
_QUANTIZED, _FUSED = 1.1, 0.6
# GB300 may use 1400 W, GB200 1200 W, with the same peak rate (NVIDIA's data sheets). With equal layouts GB300 needs
# 0.80 to 0.88 of the time (Megatron-LM, examples/moe_recipes and pull request 5728).
_POWER = {"GB300": 1.3}
_GRADIENT = 8  # bytes of a gradient in fp32 that each micro-batch reads and writes


def matrix_products(job: Job, layout: Layout, cluster: Cluster) -> float:
    """Matrix products, on the stage with most work. At least the time to read its weights for each micro-batch."""
    network = job.network
    passes = 3 + layout.repeated(network)
    each = sizes.forward_flops(network, job.sequence)
    work = passes * each * job.tokens / layout.gpus * _largest_stage(job, layout)
    low = 2 * (sizes.active_parameters(network) - sizes.embedding(network)) / each
    saved = low * (1 - cluster.flops / cluster.peak(layout.precision))  # what slows products stays as it is
    reached = cluster.reached * _POWER.get(cluster.gpu.name, 1.0)
    read = passes * BF16 * _stage_weights(job, layout) * layout.micro_batches(job)
    return max(work / reached * (1 / EFFICIENCY - saved), read / (cluster.gpu.memory_rate or math.inf))


def other_operations(job: Job, layout: Layout, cluster: Cluster) -> float:
    """Operations outside matrix products: the stored activations, moved several times through memory, and the gradients
    of the weights, which each micro-batch adds to.
    """
    network = job.network
    each = _MOVED * sizes.activation_bytes(network) * network.layers
    if network.experts and layout.precision != "bf16":
        each *= _FUSED if layout.fused else _QUANTIZED
    if network.expert_biases:
        each *= _BIASES
    passes = (3 + layout.repeated(network)) / 3
    moved = passes * each * job.tokens / layout.gpus * _uneven(job, layout)
    gradients = _GRADIENT * _stage_weights(job, layout) * layout.micro_batches(job)
    return (moved + gradients) / (cluster.gpu.memory_rate or math.inf)


def launches(job: Job, layout: Layout) -> float:
    """Seconds in which the host launches the kernels of layers with experts. The GPU waits for it if it is faster."""
    if layout.graphs == "step" or not job.network.experts:
        return 0.0
    share = (3 + layout.repeated(job.network)) / 3 * sizes.expert_layers(job.network) / job.network.layers
    for less, applies in (
        (_ATTENTION, layout.graphs == "attention"),
        (_SENT, layout.per_node),
        (_SPLIT, layout.overlap),
    ):
        share *= less if applies else 1.0
    return _LAUNCH * share * passed_layers(job, layout)


def passed_layers(job: Job, layout: Layout) -> float:
    """Layers of the largest stage, times its micro-batches."""
    return math.ceil(job.network.layers / layout.pipeline) * layout.micro_batches(job)


def _stage_weights(job: Job, layout: Layout) -> float:
    """Weights of the largest stage on one GPU."""
    each = sizes.outside_experts(job.network) / layout.tensor + sizes.in_experts(job.network) / layout.expert_shards
    return each * _uneven(job, layout) / layout.pipeline


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
