"""Time of a collective as a function of message size: the rates of the levels, and measured curves for short messages.

A long message takes x seconds, from the formulas of network_tiers.py at the rates of good machines. A shorter message
takes t = x + T^p x^(1-p), but no less than a message of a few bytes. With p = 1, T is Hockney's constant startup.
Measured curves need p from 0.6 to 1, because protocols change with the size. T grows with the number of consecutive
steps: 2(N-1) steps of a ring, 2 log2(M) hops between nodes, or a message to each GPU of another node. Shares, T and p
come from collective_algorithms.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from . import network_tiers as over
from .collective_algorithms import Algorithm, Algorithms
from .network_tiers import Level

Points: TypeAlias = tuple[tuple[float, float], ...]
_RING_STEP = 14e-6  # seconds between nodes (NCCL src/graph/tuning.cc: latency of rings, protocol Simple, network)
FEWEST_SWITCHED = 5  # minimum number of GPUs for reductions in a node's switches in NCCL (links.toml: five H200)


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing of one collective in one group of GPUs."""

    per_byte: float  # seconds per byte of a long message
    startup: float = 0.0
    power: float = 1.0
    latency: float = 0.0
    held: str = ""  # the level that limits long messages
    measured: Points = ()  # (size, measured time / modelled time)


STILL = Pace(0.0)  # of a single GPU


def seconds(pace: Pace, size: float) -> float:
    """Seconds for an array of `size` bytes, defined as in collectives.py."""
    ideal = pace.per_byte * size
    if ideal <= 0:
        return 0.0
    begun: float = pace.startup**pace.power * ideal ** (1 - pace.power)
    predicted = max(pace.latency, ideal + begun)
    return predicted * _ratio(pace.measured, size) if pace.measured else predicted


def _ratio(points: Points, size: float) -> float:
    """Interpolated between measured points over the logarithm of the size; the nearest point outside of them."""
    if size <= points[0][0]:
        return points[0][1]
    for (small, one), (large, other) in pairwise(points):
        if size <= large:
            return one + (other - one) * math.log(size / small) / math.log(large / small)
    return points[-1][1]


def pace_of(op: str, group: Sequence[Level], algorithms: Algorithms, inside: str, switched: bool = False) -> Pace:
    """The timing of an operation over the levels of a group (network_tiers.group). `inside` names the level inside a
    node.

    `op` is all_reduce, all_gather, reduce_scatter, alltoall or sendrecv. `switched`: the switches of a node can reduce.
    """
    near = [one for one in group if one.name == inside]
    far = [one for one in group if one.name != inside]
    if not group:
        return STILL
    if op == "alltoall":
        return _exchange(near, far, algorithms)
    if op == "sendrecv":
        return _sent(min(far or near, key=lambda one: one.rate), algorithms.fabric if far else algorithms.ring)
    passes = 2 if op == "all_reduce" else 1
    parts = [_in_node(one, algorithms, passes, switched) for one in near]
    return _together([*parts, _beyond(far, algorithms.fabric, passes)] if far else parts)


def _sent(one: Level, algorithm: Algorithm) -> Pace:
    return Pace(1 / (one.rate * algorithm.share), algorithm.startup, algorithm.power, algorithm.latency, one.name)


def _in_node(one: Level, algorithms: Algorithms, passes: int, switched: bool) -> Pace:
    if switched and passes == 2 and one.children >= FEWEST_SWITCHED:
        return _sent(one, algorithms.switched)
    steps, algorithm = passes * (one.children - 1), algorithms.ring
    per_byte = passes * over.all_gather(1.0, [one]) / algorithm.share
    depth = passes * math.ceil(math.log2(one.children))
    return Pace(per_byte, steps * algorithm.startup, algorithm.power, depth * algorithm.latency, one.name)


def _beyond(far: Sequence[Level], algorithm: Algorithm, passes: int) -> Pace:
    """Small AllReduces use a tree, AllGathers and ReduceScatters use a ring (NCCL src/graph/tuning.cc)."""
    ranks = over.ranks_of(far)
    hops = passes * math.ceil(math.log2(ranks))
    latency = hops * algorithm.latency if passes == 2 else max(hops * algorithm.latency, (ranks - 1) * _RING_STEP)
    per_byte = passes * over.all_gather(1.0, far) / algorithm.share
    return Pace(per_byte, hops * algorithm.startup, algorithm.power, latency, over.slowest(far).name)


def _together(parts: Sequence[Pace]) -> Pace:
    """All levels are busy at the same time. The outermost level sets the startup."""
    slow, last = max(parts, key=lambda one: one.per_byte), parts[-1]
    return replace(last, per_byte=slow.per_byte, held=slow.held)


def _exchange(near: Sequence[Level], far: Sequence[Level], algorithms: Algorithms) -> Pace:
    """An AllToAll: each child sends data for all others, and one message to each GPU of another node."""
    group = [replace(one, rate=one.rate * algorithms.direct.share) for one in near]
    group += [replace(one, rate=one.rate * algorithms.direct_fabric.share) for one in far]
    slow = over.slowest_exchange(group)
    peers = over.ranks_of(near) - 1
    others = over.ranks_of(group) - over.ranks_of(near)
    return Pace(
        per_byte=over.all_to_all(1.0, group),
        startup=peers * algorithms.direct.startup + others * algorithms.direct_fabric.startup,
        power=algorithms.direct.power,
        latency=peers * algorithms.direct.latency + others * algorithms.direct_fabric.latency,
        held=slow.name,
    )
