"""How long collectives take inside one switched domain, and what benchmarks call their bandwidth.

`size` is the whole array in bytes: what an AllGather ends with, what a ReduceScatter begins with, what all ranks of an
AllToAll hold together. `rate` is what one rank can send, in bytes per second and one direction; `step` the seconds that
one message of a few bytes takes from rank to rank (Hockney's alpha). All functions give seconds.

Sources: "How to Scale Your Model", the chapter on GPUs, for the terms in size / rate; Thakur, Rabenseifner and Gropp,
"Optimization of Collective Communication Operations in MPICH" (2005), for the steps of rings and trees; nccl-tests,
doc/PERFORMANCE.md, for bus bandwidth.
"""

from __future__ import annotations

import math

# Bytes that cross the link of a rank for each byte of the message, by nccl-tests' doc/PERFORMANCE.md: times (n-1)/n.
_BUS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0}
_WHOLE = ("broadcast", "reduce", "sendrecv", "gather", "scatter")


def all_gather(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Ring: size (N-1) / (N rate), which tends to size / rate ("How to Scale Your Model", GPUs: intra-node)."""
    return (ranks - 1) * (size / (ranks * rate) + step)


def reduce_scatter(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """As all_gather, the other way round."""
    return all_gather(size, ranks, rate, step)


def all_reduce(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Ring: a ReduceScatter and an AllGather, 2 size (N-1) / (N rate)."""
    return reduce_scatter(size, ranks, rate, step) + all_gather(size, ranks, rate, step)


def all_reduce_tree(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Double binary tree: each rank sends the array up once and down once, in 2 log2(N) steps.

    Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009); NCCL has it
    since 2.4.
    """
    return 2 * size / rate + 2 * math.ceil(math.log2(ranks)) * step if ranks > 1 else 0.0


def all_reduce_in_network(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Reduced in the switches (SHARP, NVLS): each rank sends the array once and gets it once, size / rate.

    Theory gains almost 2x over a ring; about 1.3x is seen ("How to Scale Your Model", GPUs: in-network reductions).
    """
    return size / rate + 2 * step if ranks > 1 else 0.0


def all_to_all(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """In theory size (N-1) / (N² rate), which tends to size / (N rate) ("How to Scale Your Model", GPUs: intra-node).

    Each rank has a message for each other one: N-1 steps.
    """
    return (ranks - 1) * (size / (ranks * ranks * rate) + step)


def all_to_all_sparse(size: float, ranks: int, rate: float, chosen: int, step: float = 0.0) -> float:
    """Of which each part goes to `chosen` of the ranks: min(k/N, 1) of the dense one.

    "How to Scale Your Model", GPUs: intra-node. It counts the k targets of a token as if no two were on one rank;
    `distinct` is exact.
    """
    return min(chosen / ranks, 1.0) * all_to_all(size, ranks, rate) + (ranks - 1) * step


def distinct(chosen: int, ranks: int) -> float:
    """The share of the ranks that get a part which makes `chosen` choices: (1 - ((Z-1)/Z)^k) (Z-1)/Z without itself.

    "How to Scale Your Model", GPUs, the footnote on sparse AllToAlls.
    """
    return (1 - ((ranks - 1) / ranks) ** chosen) * (ranks - 1) / ranks


def broadcast(size: float, ranks: int, rate: float, chunks: int = 1, step: float = 0.0) -> float:
    """Ring: in S chunks over K ranks size (S+K-2) / (S rate), which tends to size / rate (ML-engineering, network)."""
    return (chunks + ranks - 2) * (size / (chunks * rate) + step) if ranks > 1 else 0.0


def send_receive(size: float, rate: float, step: float = 0.0) -> float:
    """From one rank to another."""
    return size / rate + step


def bus_factor(op: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests define it. KeyError: an operation that they do not know.

    Their size of an AllGather is that of the whole array, of an AllToAll that of one rank's share.
    """
    op = op.removesuffix("-nvls")
    if op in _WHOLE:
        return 1.0
    return _BUS[op] * (ranks - 1) / ranks


def bus_bandwidth(op: str, ranks: int, size: float, seconds: float) -> float:
    """Bytes per second that nccl-tests print as busbw of a message of `size` bytes that took so long."""
    return size / seconds * bus_factor(op, ranks)


def algorithm_bandwidth(op: str, ranks: int, bus: float) -> float:
    """The algbw of a busbw; both are the same where a single rank would move nothing."""
    factor = bus_factor(op, ranks)
    return bus / factor if factor else bus


def time_of(op: str, ranks: int, size: float, bus: float) -> float:
    """Seconds of a message of `size` bytes with that bus bandwidth."""
    return size / algorithm_bandwidth(op, ranks, bus)
