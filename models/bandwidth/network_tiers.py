"""Collectives over network levels: GPUs below the switches of a node, nodes below leaves, leaves below spines.

A level connects `children` to one switch, or to several switches that act as one. Source of the formulas: "How to Scale
Your Model", the chapter on GPUs ("beyond the node level"). The slowest level sets the time: while it is busy, the
others move other parts of the array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from operator import mul

from msgspec import Struct
from msgspec.structs import replace

from . import collectives

# Seconds of a step inside a node and of a hop between nodes (NCCL src/graph/tuning.cc)
_RING, _NVLS, _NET = 3.4e-6, 25e-6, 14e-6  # protocol Simple
_RING_LL128, _NET_LL128 = 1.9e-6, 4.0e-6
_TREE, _TREE_NET = 4.0e-6, 14e-6  # of a tree
_TREE_LL128, _TREE_NET_LL128 = 1.2e-6, 8.5e-6
_BOARD, _GROWTH = 8, 0.8  # GPUs of a board, and how the startup time grows with more


class Level(Struct, frozen=True):
    """`rate` is that of all links of one child together, in bytes per second and one direction."""

    name: str  # name of the connecting switch: "node", "leaf", "spine"
    children: int
    rate: float
    mesh: bool = False  # no switch: direct links connect each two children
    cube: bool = False  # no switch: direct links connect neighbours in a hypercube

    def own_links(self, children: int) -> float:
        """The share of a child's links that lead to a group of `children` neighbours."""
        if self.mesh:
            return (children - 1) / (self.children - 1)
        return math.log2(children) / math.log2(self.children) if self.cube else 1.0


def ranks_of(levels: Sequence[Level]) -> int:
    """Number of GPUs below the last level."""
    return below(levels)[-1]


def below(levels: Sequence[Level]) -> list[int]:
    """Number of GPUs below one child of each level, and finally of all GPUs."""
    return list(accumulate((level.children for level in levels), mul, initial=1))


def all_gather(size: float, levels: Sequence[Level]) -> float:
    """The maximum over levels: size max_i (D_i - 1) / (D_i W_i). A ReduceScatter takes as long, an AllReduce twice as
    long.
    """
    return max((collectives.all_gather(size, one.children, one.rate) for one in levels), default=0.0)


def between(op: str, inside: int, far: Sequence[Level], once: bool = False) -> float:
    """Seconds per byte over the levels beyond nodes with `inside` GPUs of the group: NCCL's rings and trees.

    Its rings do not gather inside a node first. So (N-1)/N of the array passes each NIC, N being all GPUs, and twice
    that for an AllReduce. With `once`, the trees of an AllReduce between two nodes pass each NIC with the array once.
    NCCL uses them if the switches of a node reduce (NVLSTree): its model gives other trees 0.92 of the rate of a ring
    or less (src/graph/tuning.cc). More nodes take as long with trees as with rings.
    """
    if op == "all_reduce" and once and ranks_of(far) == 2:
        return 2 * all_gather(1.0, far)
    passes = 2 if op == "all_reduce" else 1
    return passes * max(collectives.all_gather(1.0, inside * ranks_of(far), one.rate) for one in far)


def hops(op: str, inside: int, nodes: int, switched: bool = False) -> float:
    """Consecutive steps between nodes, in units of one hop over the network, for nodes with `inside` GPUs of the group.

    The steps of an AllReduce are those of NCCL's model (src/graph/tuning.cc): up a tree and down, with the protocol
    LL128, or with Simple if the switches of a node reduce. A step inside a node takes part of the time of a hop. The
    steps of a ring overlap, so that they only bound the time of AllGathers from below (`ring_latency`).
    """
    depth = math.ceil(math.log2(nodes))
    if op in ("all_gather", "reduce_scatter"):
        return depth
    below_nic = _NVLS / 2 / _NET * boards(inside) if switched else (inside - 1) * _TREE_LL128 / _TREE_NET_LL128
    return (2 if op == "all_reduce" else 1) * (depth + below_nic)


def boards(gpus: int) -> float:
    """The startup time of a reduction in switches, relative to a board with eight GPUs.

    It grows a little less than the number of boards: 0.7 ms between two racks of 64 GB200, 0.23 ms between two boards
    of H200 (collectives.toml).
    """
    return max(1.0, math.pow(gpus / _BOARD, _GROWTH))


def ring_latency(inside: int, nodes: int, simple: bool = False) -> float:
    """Seconds of a message of a few bytes once around a ring of all GPUs, with the protocol LL128 or Simple."""
    step, hop = (_RING, _NET) if simple else (_RING_LL128, _NET_LL128)
    return (nodes - 1) * hop + (inside - 1) * nodes * step


def ll128(op: str, inside: int, nodes: int) -> float:
    """Startup time with the protocol LL128, relative to Simple: of a tree for an AllReduce, else of a ring."""
    if op == "all_reduce":
        depth = math.ceil(math.log2(nodes))
        fast, slow = (
            (inside - 1) * step + depth * hop for step, hop in ((_TREE_LL128, _TREE_NET_LL128), (_TREE, _TREE_NET))
        )
        return fast / slow
    return ring_latency(inside, nodes) / ring_latency(inside, nodes, simple=True)


def all_to_all(size: float, levels: Sequence[Level]) -> float:
    """The data that leaves a child, divided by its rate. Over M nodes: size (M-1) / (M² W_node)."""
    return max((size * time for time, _ in exchanges(levels)), default=0.0)


def slowest_exchange(levels: Sequence[Level]) -> Level:
    """The level that limits an AllToAll."""
    return max(exchanges(levels), key=lambda timed: timed[0])[1]


def exchanges(levels: Sequence[Level]) -> Iterator[tuple[float, Level]]:
    """Each level with its seconds per byte of an AllToAll."""
    every = ranks_of(levels)
    for one, width in zip(levels, below(levels), strict=False):
        yield width * (every - width) / every**2 / one.rate if one.children > 1 else 0.0, one


def slowest(levels: Sequence[Level]) -> Level:
    """The level that limits an AllGather."""
    return max(levels, key=lambda one: collectives.all_gather(1.0, one.children, one.rate))


def group(levels: Sequence[Level], ranks: int, stride: int = 1) -> tuple[Level, ...]:
    """The levels for a group of `ranks` GPUs at distance `stride`, while all such groups communicate.

    Members below one child share its link with members of other groups. In a mesh a group has only the links between
    its members: a pair of eight MI300X has a seventh of the rate of one GPU. In a hypercube of 16 it has a quarter.
    """
    return tuple(_seen(levels, ranks, stride))


def _seen(levels: Sequence[Level], ranks: int, stride: int) -> Iterator[Level]:
    for one, (lower, upper) in zip(levels, pairwise(below(levels)), strict=True):
        inside, among = (max(1, min(ranks, -(-width // stride))) for width in (lower, upper))
        children = -(-among // inside)
        if children > 1:
            # At least one group, and at most as many groups as GPUs below a child.
            share = min(1.0, inside / lower) * one.own_links(children)
            yield replace(one, children=children, rate=one.rate * share)
