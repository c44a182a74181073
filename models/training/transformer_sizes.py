"""What follows from the sizes of a model: parameters, work for a token, what must be kept for the way back."""

from __future__ import annotations

from ..catalog.networks import Network


def layer_attention(network: Network) -> int:
    """Parameters of one layer's attention."""
    if network.attention is not None:
        return network.attention
    return 2 * network.width * (network.heads + network.kv_heads) * network.head


def expert(network: Network) -> int:
    """Parameters of one expert of one layer."""
    return 3 * network.width * network.expert_width


def layer_dense(network: Network) -> int:
    """Parameters of one layer's feed-forward without experts."""
    return (3 if network.gated else 2) * network.width * network.feed_forward


def expert_layers(network: Network) -> int:
    """Layers that have experts."""
    return network.layers - network.dense_layers if network.experts else 0


def embedding(network: Network) -> int:
    """Parameters of one matrix between words and the model's width."""
    return network.vocabulary * network.width


def outside_experts(network: Network) -> int:
    """Parameters of all layers that every token uses."""
    moe = expert_layers(network)
    dense = (network.layers - moe) * layer_dense(network) + moe * network.shared * expert(network)
    return network.layers * layer_attention(network) + dense


def in_experts(network: Network) -> int:
    """Parameters of all experts of all layers that are chosen from."""
    return expert_layers(network) * network.experts * expert(network)


def parameters(network: Network) -> int:
    """All but norms and biases."""
    matrices = 1 if network.tied else 2
    return outside_experts(network) + in_experts(network) + matrices * embedding(network)


def active_parameters(network: Network) -> int:
    """What a token is multiplied with: of the experts those that are chosen, and the matrix that predicts words."""
    chosen = expert_layers(network) * network.active * expert(network)
    return outside_experts(network) + chosen + embedding(network)


def forward_flops(network: Network, sequence: int) -> float:
    """For one token: 2 for each parameter, and attention to half of the sequence, for none looks ahead.

    Narayanan and others, "Efficient Large-Scale Language Model Training" (2021), whose formula counts the whole.
    """
    attention = 2 * sequence * network.heads * network.head * network.layers
    return float(2 * active_parameters(network) + attention)


def kept_bytes(network: Network) -> float:
    """For one token and layer, the least that the way back needs, in bf16.

    The inputs of both norms, queries, keys, values and what attention made of them, and what the first matrices of the
    feed-forward gave; norms, activations and scores are done again. That is 20 D where Korthikanti and others,
    "Reducing Activation Recomputation" (2022), keep 34 D: F = 4D, no gates, and norms and activations are kept.
    """
    attention = network.head * (2 * network.heads + 2 * network.kv_heads)
    if network.experts:
        inside = 2 * network.expert_width * (network.active + network.shared) + network.width * network.active
    else:
        inside = (2 if network.gated else 1) * network.feed_forward
    return 2.0 * (2 * network.width + attention + inside)
