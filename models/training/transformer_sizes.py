"""Quantities that follow from a model's sizes: parameters, work per token, activations for the backward pass.

A sweep asks for the same model 20,000 times, so those that need several products are cached.
"""

from __future__ import annotations

from functools import lru_cache

from ..site.schema import Network

_cached = lru_cache(maxsize=64)


def layer_attention(network: Network) -> int:
    """Parameters of one layer's attention."""
    if network.attention is not None:
        return network.attention
    return 2 * network.width * (network.heads + network.kv_heads) * network.head


def expert(network: Network) -> int:
    """Parameters of one expert of one layer."""
    return 3 * network.width * network.expert_width


def layer_dense(network: Network) -> int:
    """Parameters of one layer's feed-forward block without experts."""
    return (3 if network.gated else 2) * network.width * network.feed_forward


def used_width(network: Network) -> int:
    """The width of the feed-forward layers that one token uses: of the selected and the shared experts together."""
    return (network.active + network.shared) * network.expert_width if network.experts else network.feed_forward


def expert_layers(network: Network) -> int:
    """Number of layers with experts."""
    return network.layers - network.dense_layers if network.experts else 0


def embedding(network: Network) -> int:
    """Parameters of one matrix between vocabulary and model width."""
    return network.vocabulary * network.width


@_cached
def outside_experts(network: Network) -> int:
    """Parameters that every token uses, in all layers."""
    moe = expert_layers(network)
    dense = (network.layers - moe) * layer_dense(network) + moe * network.shared * expert(network)
    return network.layers * layer_attention(network) + dense


@_cached
def in_experts(network: Network) -> int:
    """Parameters of all selectable experts of all layers."""
    return expert_layers(network) * network.experts * expert(network)


def parameters(network: Network) -> int:
    """All parameters except norms and biases."""
    matrices = 1 if network.tied else 2
    return outside_experts(network) + in_experts(network) + matrices * embedding(network)


@_cached
def active_parameters(network: Network) -> int:
    """Parameters that one token uses: selected experts only, and the output matrix."""
    chosen = expert_layers(network) * network.active * expert(network)
    return outside_experts(network) + chosen + embedding(network)


@_cached
def forward_flops(network: Network, sequence: int) -> float:
    """For one token: 2 per parameter, and attention to half of the sequence (causal).

    Narayanan and others, "Efficient Large-Scale Language Model Training" (2021), whose formula counts the whole
    sequence.
    """
    return float(2 * active_parameters(network) + attention_flops(network, sequence))


def attention_flops(network: Network, sequence: int) -> float:
    """For one token: scores and weighted sums over half of the sequence, in all layers."""
    return 2.0 * sequence * network.heads * network.head * network.layers


@_cached
def activation_bytes(network: Network) -> float:
    """Minimum bytes per token and layer for the backward pass, in bf16.

    Stored are the inputs of both norms, queries, keys, values, the output of attention, and the output of the first
    feed-forward matrices. Norms, activations and scores are recomputed. This is 20 D. Korthikanti and others, "Reducing
    Activation Recomputation" (2022), have 34 D: F = 4D, no gates, and norms and activations are stored.
    """
    attention = network.head * (2 * network.heads + 2 * network.kv_heads)
    if network.experts:
        inside = 2 * network.expert_width * (network.active + network.shared) + network.width * network.active
    else:
        inside = (2 if network.gated else 1) * network.feed_forward
    return 2.0 * (2 * network.width + attention + inside)
