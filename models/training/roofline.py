"""Compute against communication, as formulas: where the one begins to wait for the other.

Letters as in "How to Scale Your Model", the chapters on training and on GPUs, whence the formulas are: B tokens in a
batch, D the model's width, F that of its feed-forward layers, C what a GPU computes in a second (FLOP), W what it sends
in a second (bytes, one direction; beyond a node that of a whole node, for its GPUs send parts of one array), k of E
experts for each token. Arrays are bf16, two bytes a number, unless said.
"""

from __future__ import annotations

BF16 = 2


def critical_tokens(flops: float, rate: float, experts: int = 1, active: int = 1, stages: int = 1) -> float:
    """Tokens a GPU below which data parallelism, sharded or not, waits for the network: C E / (W k p).

    Each weight of a layer is used 6 times a token and moved 6 bytes a step; a pipeline of p stages moves a p-th.
    """
    return flops * experts / (rate * active * stages)


def critical_tokens_two_nodes(flops: float, rate: float) -> float:
    """Over exactly two nodes each sends half of the array: half of the tokens are enough."""
    return critical_tokens(flops, rate) / 2


def tensor_limit(width: float, flops: float, rate: float) -> float:
    """Ways of tensor parallelism above which it waits for the network: F W / C."""
    return width * rate / flops


def tensor_width_two_nodes(ways: int, flops: float, rate: float, inside: int = 8) -> float:
    """The F from which on tensor parallelism over exactly two nodes waits for nothing: C / W (Y - inside)."""
    return flops / rate * (ways - inside)


def expert_times(
    batch: float, model: float, width: float, active: int, ways: int, flops: float, rate: float, inside: int = 8
) -> tuple[float, float]:
    """Seconds of mathematics and of both AllToAlls, expert parallel over `ways` GPUs with `inside` in a node.

    4 B k D F / (Z C) and 4 B D (Z-8) / (W Z) min(8 k / Z, 1).
    """
    mathematics = 4 * batch * active * model * width / (ways * flops)
    messages = 4 * batch * model * (ways - inside) / (rate * ways) * min(inside * active / ways, 1.0)
    return mathematics, messages


def expert_width(flops: float, rate: float, inside: int = 8) -> float:
    """The F above which wide expert parallelism pays: 8 C / W_node."""
    return inside * flops / rate


def pipeline_time(batch: float, model: float, rate: float, micro_batches: int, stages: int) -> float:
    """Seconds of all hops of one pass: 2 B D / (W m) for each of m + p - 2."""
    return BF16 * batch * model / (rate * micro_batches) * (micro_batches + stages - 2)


def bubble(stages: int, micro_batches: int, interleave: int = 1) -> float:
    """The share of a step in which a stage waits: (p-1) / (v m + p-1).

    Narayanan and others, "Efficient Large-Scale Language Model Training" (2021); v parts of the model on each stage.
    """
    return (stages - 1) / (interleave * micro_batches + stages - 1)


def train_flops(parameters: float, tokens: float, recompute: bool = False) -> float:
    """6 for each parameter and token, 8 where the forward pass is done twice (Kaplan and others, 2020)."""
    return (8 if recompute else 6) * parameters * tokens


def train_seconds(parameters: float, tokens: float, gpus: int, flops: float, utilisation: float) -> float:
    """How long a training takes whose GPUs compute that share of what they can."""
    return train_flops(parameters, tokens) / (gpus * flops * utilisation)


def state_bytes(
    parameters: float, ways: int, stage: int, weights: float = 2, gradients: float = 2, optimizer: float = 12
) -> float:
    """Bytes a GPU of weights, gradients and optimizer, sharded as ZeRO's stage 0 to 3 over `ways` GPUs.

    Rajbhandari and others, "ZeRO" (2020): 16 bytes a parameter for Adam in mixed precision, of which stage 1 shards the
    12 of the optimizer, stage 2 the gradients too, stage 3 all.
    """
    kinds = ((weights, 3), (gradients, 2), (optimizer, 1))
    return parameters * sum(width / (ways if stage >= first else 1) for width, first in kinds)


def state_traffic(stage: int) -> float:
    """What ZeRO moves in a step, over what a plain AllReduce of the gradients moves: 1.5 where weights are sharded."""
    return 1.5 if stage >= 3 else 1.0


def intensity(flops: float, memory_rate: float) -> float:
    """FLOP for each byte of memory below which a kernel waits for the memory."""
    return flops / memory_rate


def matmul_time(rows: int, inner: int, columns: int, flops: float, memory_rate: float, width: float = BF16) -> float:
    """Seconds of [rows, inner] times [inner, columns]: the longer of computing and of moving all three once."""
    moved = width * (rows * inner + inner * columns + rows * columns)
    return max(2 * rows * inner * columns / flops, moved / memory_rate)


def add_time(numbers: int, memory_rate: float, width: float = 4) -> float:
    """Seconds of adding two vectors: two are read, one is written."""
    return 3 * width * numbers / memory_rate
