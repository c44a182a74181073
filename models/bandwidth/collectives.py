"""Times of collectives inside one switched domain, and the bandwidth definitions of benchmarks.

`size` is the whole array in bytes: the result of an AllGather, the input of a ReduceScatter, the sum over all ranks of
an AllToAll. `rate` is what one rank can send, in bytes per second and one direction. `step` is the time of a message of
a few bytes between two ranks, in seconds (Hockney's alpha). Functions return seconds unless they name a bandwidth.

Sources: "How to Scale Your Model", the chapter on GPUs, for the terms in size / rate; Thakur, Rabenseifner and Gropp,
"Optimization of Collective Communication Operations in MPICH" (2005), for the steps of rings and trees; nccl-tests,
doc/PERFORMANCE.md, for bus bandwidth.
"""

from __future__ import annotations

import math

# Bytes over the link of a rank per byte of the message, times (n-1)/n (nccl-tests, doc/PERFORMANCE.md).
_BUS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0}
_WHOLE = ("broadcast", "reduce", "sendrecv", "gather", "scatter")


def all_gather(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Ring: size (N-1) / (N rate), which tends to size / rate ("How to Scale Your Model", GPUs: intra-node)."""
    return (ranks - 1) * (size / (ranks * rate) + step)


def reduce_scatter(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """As all_gather, in the reverse order."""
    return all_gather(size, ranks, rate, step)


def all_reduce(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Ring: a ReduceScatter and an AllGather, 2 size (N-1) / (N rate)."""
    return reduce_scatter(size, ranks, rate, step) + all_gather(size, ranks, rate, step)


def all_reduce_tree(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Double binary tree: each rank sends the array up once and down once, in 2 log2(N) steps.

    Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009). In NCCL
    since 2.4.
    """
    return 2 * size / rate + 2 * math.ceil(math.log2(ranks)) * step if ranks > 1 else 0.0


def all_reduce_in_network(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """Reduction in the switches (SHARP, NVLS): each rank sends the array once and receives it once, size / rate.

    In theory almost 2x faster than a ring; measured about 1.3x ("How to Scale Your Model", GPUs: in-network
    reductions).
    """
    return size / rate + 2 * step if ranks > 1 else 0.0


def all_to_all(size: float, ranks: int, rate: float, step: float = 0.0) -> float:
    """In theory size (N-1) / (N² rate), which tends to size / (N rate) ("How to Scale Your Model", GPUs: intra-node).

    Each rank sends one message to each other rank: N-1 steps.
    """
    return (ranks - 1) * (size / (ranks * ranks * rate) + step)


def all_to_all_sparse(size: float, ranks: int, rate: float, chosen: int, step: float = 0.0) -> float:
    """An AllToAll in which each part goes to `chosen` of the ranks: min(k/N, 1) of the dense one.

    "How to Scale Your Model", GPUs: intra-node. It assumes that the k targets of a token are on different ranks;
    `distinct` is exact.
    """
    return min(chosen / ranks, 1.0) * all_to_all(size, ranks, rate) + (ranks - 1) * step


def distinct(chosen: int, ranks: int) -> float:
    """The share of ranks that receive a part with `chosen` random targets: (1 - ((Z-1)/Z)^k) (Z-1)/Z without itself.

    "How to Scale Your Model", GPUs, the footnote on sparse AllToAlls.
    """
    return (1 - ((ranks - 1) / ranks) ** chosen) * (ranks - 1) / ranks


def broadcast(size: float, ranks: int, rate: float, chunks: int = 1, step: float = 0.0) -> float:
    """Ring, S chunks over K ranks: size (S+K-2) / (S rate), which tends to size / rate (ML-engineering, network)."""
    return (chunks + ranks - 2) * (size / (chunks * rate) + step) if ranks > 1 else 0.0


def send_receive(size: float, rate: float, step: float = 0.0) -> float:
    """Seconds from one rank to another."""
    return size / rate + step


def bus_factor(op: str, ranks: int) -> float:
    """Bus bandwidth divided by algorithm bandwidth, as in nccl-tests. KeyError: nccl-tests have no such operation.

    In nccl-tests the size of an AllGather is the whole array; that of an AllToAll is one rank's share.
    """
    op = op.removesuffix("-nvls")
    if op in _WHOLE:
        return 1.0
    return _BUS[op] * (ranks - 1) / ranks


def array_of(op: str, size: float, ranks: int) -> float:
    """Bytes of the whole array for a message of `size` bytes, as nccl-tests count it."""
    return size * ranks if op == "alltoall" else size


def bus_bandwidth(op: str, ranks: int, size: float, seconds: float) -> float:
    """The busbw of nccl-tests, in bytes per second, for a message of `size` bytes that took `seconds`."""
    return size / seconds * bus_factor(op, ranks)


def algorithm_bandwidth(op: str, ranks: int, bus: float) -> float:
    """The algbw for a busbw. Both are equal for a single rank."""
    factor = bus_factor(op, ranks)
    return bus / factor if factor else bus


def time_of(op: str, ranks: int, size: float, bus: float) -> float:
    """Seconds of a message of `size` bytes at that bus bandwidth."""
    return size / algorithm_bandwidth(op, ranks, bus)
