"""Collectives over network levels: GPUs below the switches of a node, nodes below leaves, leaves below spines.

A level connects `children` to one switch, or to several switches that act as one. Source of the formulas: "How to Scale
Your Model", the chapter on GPUs ("beyond the node level"). The slowest level sets the time: while it is busy, the
others move other parts of the array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import mul

from . import collectives


@dataclass(frozen=True, slots=True)
class Level:
    """`rate` is that of all links of one child together, in bytes per second and one direction."""

    name: str  # name of the connecting switch: "node", "leaf", "spine"
    children: int
    rate: float
    mesh: bool = False  # no switch: direct links connect each two children


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


def usable_rate(levels: Sequence[Level]) -> float:
    """min_i D_i W_i / (D_i - 1): bytes per second of an AllGather or ReduceScatter."""
    return 1 / all_gather(1.0, levels)


def reduce_scatter(size: float, levels: Sequence[Level], inner: int = 1) -> float:
    """For an array also sharded over `inner` neighbouring GPUs: max_i size (D-1) S / (D max(Y, S) W).

    S is the number of GPUs below one child. For many nodes this tends to size D_node / (W_node max(D_node, Y)). The
    source's formula for any tree has no S in the numerator: its W is the rate of one GPU's share of the link.
    """
    times = (
        collectives.reduce_scatter(size * width / max(inner, width), one.children, one.rate)
        for one, width in zip(levels, below(levels), strict=False)
        if width * one.children > inner
    )
    return max(times, default=0.0)


def all_to_all(size: float, levels: Sequence[Level]) -> float:
    """The data that leaves a child, divided by its rate. Over M nodes: size (M-1) / (M² W_node)."""
    return max((size * time for time, _ in _exchanges(levels)), default=0.0)


def slowest_exchange(levels: Sequence[Level]) -> Level:
    """The level that limits an AllToAll."""
    return max(_exchanges(levels), key=lambda timed: timed[0])[1]


def _exchanges(levels: Sequence[Level]) -> Iterator[tuple[float, Level]]:
    """Each level with its seconds per byte."""
    every = ranks_of(levels)
    for one, width in zip(levels, below(levels), strict=False):
        yield width * (every - width) / every**2 / one.rate if one.children > 1 else 0.0, one


def slowest(levels: Sequence[Level]) -> Level:
    """The level that limits an AllGather."""
    return max(levels, key=lambda one: collectives.all_gather(1.0, one.children, one.rate))


def group(levels: Sequence[Level], ranks: int, stride: int = 1) -> tuple[Level, ...]:
    """The levels for a group of `ranks` GPUs at distance `stride`, while all such groups communicate.

    Members below one child share its link with members of other groups. In a mesh a group has only the links between
    its members: a pair of eight MI300X has a seventh of the rate of one GPU.
    """
    return tuple(_seen(levels, ranks, stride))


def _seen(levels: Sequence[Level], ranks: int, stride: int) -> Iterator[Level]:
    for one, (lower, upper) in zip(levels, pairwise(below(levels)), strict=True):
        inside, among = (max(1, min(ranks, -(-width // stride))) for width in (lower, upper))
        children = -(-among // inside)
        if children > 1:
            # At least one group, and at most as many groups as GPUs below a child.
            share = min(1.0, inside / lower) * ((children - 1) / (one.children - 1) if one.mesh else 1.0)
            yield replace(one, children=children, rate=one.rate * share)


def slowed(levels: Sequence[Level], left: Mapping[str, float]) -> tuple[Level, ...]:
    """The levels if one child of each named level keeps only a share of its rate. All others wait for it."""
    return tuple(replace(one, rate=one.rate * left.get(one.name, 1.0)) for one in levels)


_TAKES = {"all_reduce": all_gather, "all_gather": all_gather, "reduce_scatter": all_gather, "alltoall": all_to_all}


def slowdown(op: str, levels: Sequence[Level], left: Mapping[str, float]) -> float:
    """The slowdown factor of a collective with long messages. 1.0 if another level limits it before and after.

    Names of missing levels are ignored. KeyError: an operation other than all_reduce, all_gather, reduce_scatter and
    alltoall. ValueError: a level with no rate left.
    """
    if any(share <= 0 for share in left.values()):
        raise ValueError("a link that carries nothing ends a collective: there is no slowdown")
    takes = _TAKES[op]
    whole = takes(1.0, levels)
    return takes(1.0, slowed(levels, left)) / whole if whole else 1.0
