"""Time of a collective as a function of message size: the rates of the levels, and measured curves for short messages.

A long message takes x seconds, from the formulas of network_tiers.py at the rates of good machines. A shorter message
takes t = x + T^p x^(1-p), but no less than a message of a few bytes. With p = 1, T is Hockney's constant startup.
Measured curves need p from 0.6 to 1, because protocols change with the size. T grows with the number of consecutive
steps: 2(N-1) steps of a ring, hops between nodes (network_tiers.py), or a message to each GPU of another node. Shares,
T and p come from collective_algorithms.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from . import collectives
from . import network_tiers as over
from .collective_algorithms import DIRECT, ONCE, RING, SENT, SWITCHED, Algorithm, Algorithms
from .network_tiers import Level

Points: TypeAlias = tuple[tuple[float, float], ...]
_CHUNKS = 1 << 20  # of a broadcast; so many that filling the ring takes no time
_PASSES = {"all_reduce": 2}  # over a ring; all others pass it once
# Rate inside nodes of reductions in switches over several nodes, relative to a single node: 0.91 to 0.95 for two p5,
# Dell H200, Nebius H200 and HGX H100 (further_curves.csv in bench/accuracy/collectives).
_ACROSS = 0.94
FEWEST_SWITCHED = 5  # minimum number of GPUs for reductions in a node's switches in NCCL (links.toml: five H200)


class Pace(Struct, frozen=True):
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


def share_of(pace: Pace, size: float | None) -> float:
    """The share of the long-message rate at `size` bytes."""
    return 1.0 if size is None or pace == STILL else pace.per_byte * size / seconds(pace, size)


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

    `op` is all_reduce, all_gather, reduce_scatter, alltoall, broadcast or sendrecv. `switched`: the switches of a node
    can reduce.
    """
    near = [one for one in group if one.name == inside]
    far = [one for one in group if one.name != inside]
    if not group:
        return STILL
    if op == DIRECT:
        return _exchange(near, far, algorithms)
    if op == SENT:
        slow = min(far or near, key=lambda one: one.rate)
        return once(slow, (algorithms.far if far else algorithms.near)[SENT])
    parts = [_in_node(op, one, algorithms, switched) for one in near]
    if not far:
        return _together(parts)
    way = SWITCHED if reduces_in_switches(op, over.ranks_of(near), switched) else op
    if way == SWITCHED:
        parts = [replace(one, per_byte=one.per_byte / _ACROSS) for one in parts]
    algorithm = algorithms.far[way]
    if op == RING and algorithm.once and over.ranks_of(far) == 2:
        algorithm = replace(algorithms.far[way + ONCE], once=True)
    return _together([*parts, _beyond(op, over.ranks_of(near), far, algorithm, way == SWITCHED)])


def reduces_in_switches(op: str, ranks: int, switched: bool) -> bool:
    """Whether NCCL lets the switches of a node reduce the arrays of so many GPUs."""
    return switched and op == RING and ranks >= FEWEST_SWITCHED


def bounds(
    op: str, group: Sequence[Level], algorithms: Algorithms, inside: str, switched: bool = False
) -> tuple[Pace, Pace, Pace]:
    """The slowest, usual and fastest good machines. Between nodes, NCCL may reduce in no switch: the slowest use a
    ring, if it is slower, and wait for its steps. Inside a node, a rate of the ring means that the reduction in
    switches (NVLS) is off.
    """
    slow, usual, fast = algorithms.each()
    near, far = [one for one in group if one.name == inside], [one for one in group if one.name != inside]
    ways = {False, switched} if far else {switched}
    slowest = max((pace_of(op, group, slow, inside, on) for on in ways), key=lambda pace: pace.per_byte)
    if far and op == RING:
        around = 2 * over.ring_latency(over.ranks_of(near), over.ranks_of(far), simple=True)
        slowest = replace(slowest, latency=max(slowest.latency, around))
    return slowest, pace_of(op, group, usual, inside, switched), pace_of(op, group, fast, inside, switched)


def once(one: Level, algorithm: Algorithm) -> Pace:
    """The array passes the link once."""
    return Pace(1 / (one.rate * algorithm.share), algorithm.startup, algorithm.power, algorithm.latency, one.name)


def tree(group: Sequence[Level], algorithms: Algorithms, inside: str) -> Pace:
    """An AllReduce over a tree at each level: each part sends the whole array up and down, in 2 log2(N) steps."""
    return _together([_tree(one, (algorithms.near if one.name == inside else algorithms.far)[RING]) for one in group])


def _tree(one: Level, algorithm: Algorithm) -> Pace:
    steps = 2 * math.ceil(math.log2(one.children))
    return Pace(
        per_byte=collectives.all_reduce_tree(1.0, one.children, one.rate) / algorithm.share,
        startup=steps * algorithm.startup,
        power=algorithm.power,
        latency=steps * algorithm.latency,
        held=one.name,
    )


def one_shot(group: Sequence[Level], algorithms: Algorithms, inside: str) -> Pace:
    """An AllReduce in one step: each GPU sends its whole array to each other one, an AllToAll of N² arrays."""
    exchange = pace_of(DIRECT, group, algorithms, inside)
    return replace(exchange, per_byte=exchange.per_byte * over.ranks_of(group) ** 2)


def _in_node(op: str, one: Level, algorithms: Algorithms, switched: bool) -> Pace:
    if reduces_in_switches(op, one.children, switched):
        pace = once(one, algorithms.near[SWITCHED])
        return replace(pace, startup=pace.startup * over.boards(one.children))
    algorithm, passes = algorithms.near[op], _PASSES.get(op, 1)
    steps = passes * (one.children - 1)
    depth = passes * math.ceil(math.log2(one.children))
    per_byte = _per_byte(op, [one]) / algorithm.share
    return Pace(per_byte, steps * algorithm.startup, algorithm.power, depth * algorithm.latency, one.name)


def _per_byte(op: str, levels: Sequence[Level]) -> float:
    """Seconds per byte of a ring over these levels at their rated rates. A broadcast in many chunks passes each link
    once.
    """
    if op == "broadcast":
        return max(collectives.broadcast(1.0, one.children, one.rate, _CHUNKS) for one in levels)
    return _PASSES.get(op, 1) * over.all_gather(1.0, levels)


def _beyond(op: str, inside: int, far: Sequence[Level], algorithm: Algorithm, switched: bool) -> Pace:
    """Small AllReduces and broadcasts use a tree, AllGathers and ReduceScatters a ring (NCCL src/graph/tuning.cc)."""
    hops = over.hops(op, inside, over.ranks_of(far), switched)
    ideal = _per_byte(op, far) if op == "broadcast" else over.between(op, inside, far, algorithm.once)
    latency = over.hops(op, 1, over.ranks_of(far)) * algorithm.latency
    if latency and op in ("all_gather", "reduce_scatter"):
        latency = max(latency, over.ring_latency(inside, over.ranks_of(far)))
    faster = over.ll128(op, inside, over.ranks_of(far)) if algorithm.ll128 and not switched else 1.0
    startup, held = hops * algorithm.startup * faster, over.slowest(far).name
    return Pace(ideal / algorithm.share, startup, algorithm.power, latency * faster, held)


def _together(parts: Sequence[Pace]) -> Pace:
    """All levels are busy at the same time. The outermost level sets the startup."""
    slow, last = max(parts, key=lambda one: one.per_byte), parts[-1]
    return replace(last, per_byte=slow.per_byte, held=slow.held)


def _exchange(near: Sequence[Level], far: Sequence[Level], algorithms: Algorithms) -> Pace:
    """An AllToAll: each child sends data for all others, and one message to each GPU of another node."""
    direct, beyond = algorithms.near[DIRECT], algorithms.far[DIRECT]
    group = [replace(one, rate=one.rate * direct.share) for one in near]
    group += [replace(one, rate=one.rate * beyond.share) for one in far]
    slow = over.slowest_exchange(group)
    peers = over.ranks_of(near) - 1
    others = over.ranks_of(group) - over.ranks_of(near)
    return Pace(
        per_byte=over.all_to_all(1.0, group),
        startup=peers * direct.startup + others * beyond.startup,
        power=direct.power,
        latency=peers * direct.latency + others * beyond.latency,
        held=slow.name,
    )
