"""Compute against communication: formulas for the point at which one waits for the other.

The formulas and letters are those of "How to Scale Your Model", the chapters on training and on GPUs. B: tokens in a
batch. D: width of the model. F: width of its feed-forward layers. C: compute rate of a GPU (FLOP/s). W: send rate of a
GPU (bytes/s, one direction; beyond a node that of a whole node, because its GPUs send parts of one array). k of E
experts process each token. Arrays are bf16, two bytes per number, unless stated.
"""

from __future__ import annotations

BF16 = 2


def critical_tokens(flops: float, rate: float, experts: int = 1, active: int = 1, stages: int = 1) -> float:
    """Tokens per GPU below which data parallelism, sharded or not, waits for the network: C E / (W k p).

    Each weight of a layer is used 6 times per token, and 6 bytes move per step. Each of p pipeline stages moves 1/p of
    them.
    """
    return flops * experts / (rate * active * stages)


def critical_tokens_two_nodes(flops: float, rate: float) -> float:
    """With exactly two nodes each sends half of the array, so half of the tokens are enough."""
    return critical_tokens(flops, rate) / 2


def tensor_limit(width: float, flops: float, rate: float) -> float:
    """Degree of tensor parallelism above which it waits for the network: F W / C."""
    return width * rate / flops


def tensor_width_two_nodes(ranks: int, flops: float, rate: float, inside: int = 8) -> float:
    """The F above which tensor parallelism over exactly two nodes does not wait: C / W (Y - inside)."""
    return flops / rate * (ranks - inside)


def expert_times(
    batch: float, model: float, width: float, active: int, ranks: int, flops: float, rate: float, inside: int = 8
) -> tuple[float, float]:
    """Seconds of compute and of both AllToAlls, with experts over `ranks` GPUs and `inside` GPUs per node.

    4 B k D F / (Z C) and 4 B D (Z-8) / (W Z) min(8 k / Z, 1).
    """
    mathematics = 4 * batch * active * model * width / (ranks * flops)
    messages = 4 * batch * model * (ranks - inside) / (rate * ranks) * min(inside * active / ranks, 1.0)
    return mathematics, messages


def expert_width(flops: float, rate: float, inside: int = 8) -> float:
    """The F above which wide expert parallelism pays: 8 C / W_node."""
    return inside * flops / rate


def pipeline_time(batch: float, model: float, rate: float, micro_batches: int, stages: int) -> float:
    """Seconds of all hops of one pass: each of m + p - 2 hops takes 2 B D / (W m)."""
    return BF16 * batch * model / (rate * micro_batches) * (micro_batches + stages - 2)


def bubble(stages: int, micro_batches: int, interleave: int = 1) -> float:
    """The share of a step in which a stage is idle: (p-1) / (v m + p-1).

    Narayanan and others, "Efficient Large-Scale Language Model Training" (2021); v is the number of model parts per
    stage.
    """
    return (stages - 1) / (interleave * micro_batches + stages - 1)


def zero_bubble(stages: int, micro_batches: int, backward: float = 2.0, both_ends: bool = False) -> float:
    """The same if the backward pass of the weights W fills gaps, also with micro-batches from both ends.

    Idle times of ZB1P, (p-1)(F+B-2W), and DualPipe, (p/2-1)(F&B+B-3W), in the DeepSeek-V3 technical report, table 2,
    with F = W = 1, F&B = F+B, and `backward` for B. Qi and others, "Zero Bubble Pipeline Parallelism" (2024).
    """
    idle = (stages / 2 - 1) * (2 * backward - 2) if both_ends else (stages - 1) * (backward - 1)
    return idle / (micro_batches * (1 + backward) + idle)


def train_flops(parameters: float, tokens: float, recompute: bool = False) -> float:
    """6 per parameter and token, 8 with a repeated forward pass (Kaplan and others, 2020)."""
    return (8 if recompute else 6) * parameters * tokens


def train_seconds(
    parameters: float, tokens: float, gpus: int, flops: float, utilisation: float = 1.0, recompute: bool = False
) -> float:
    """Seconds of a training whose GPUs reach the share `utilisation` of their compute rate."""
    return train_flops(parameters, tokens, recompute) / (gpus * flops * utilisation)


def state_bytes(
    parameters: float, ranks: int, stage: int, weights: float = 2, gradients: float = 2, optimizer: float = 12
) -> float:
    """Bytes per GPU of weights, gradients and optimizer, with ZeRO stage 0 to 3 over `ranks` GPUs.

    Rajbhandari and others, "ZeRO" (2020): 16 bytes per parameter for Adam in mixed precision. Stage 1 shards the 12
    bytes of the optimizer, stage 2 also gradients, stage 3 everything.
    """
    whole = (weights if stage < 3 else 0) + (gradients if stage < 2 else 0) + (optimizer if stage < 1 else 0)
    return parameters * (whole + (weights + gradients + optimizer - whole) / ranks)


def state_traffic(stage: int) -> float:
    """ZeRO's traffic per step relative to a plain AllReduce of the gradients: 1.5 with sharded weights."""
    return 1.5 if stage >= 3 else 1.0


def intensity(flops: float, memory_rate: float) -> float:
    """FLOP per byte of memory traffic, below which a kernel waits for memory."""
    return flops / memory_rate


def matmul_time(rows: int, inner: int, columns: int, flops: float, memory_rate: float, width: float = BF16) -> float:
    """Seconds of [rows, inner] times [inner, columns]: the maximum of compute and of one transfer of all three
    matrices.
    """
    moved = width * (rows * inner + inner * columns + rows * columns)
    return max(2 * rows * inner * columns / flops, moved / memory_rate)


def add_time(numbers: int, memory_rate: float, width: float = 4) -> float:
    """Seconds to add two vectors: two reads, one write."""
    return 3 * width * numbers / memory_rate
