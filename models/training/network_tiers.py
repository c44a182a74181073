"""Collectives over levels: GPUs below the switches of a node, nodes below leaves, leaves below spines.

A level joins `children` things to one switch, or to several that act as one. Source of the formulas: "How to Scale Your
Model", the chapter on GPUs ("beyond the node level"). What holds is the slowest level: while one level is filled, the
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
    """`rate` is of all links that join one child, in bytes per second and one direction."""

    name: str  # of what joins: "node", "leaf", "spine"
    children: int
    rate: float
    mesh: bool = False  # without a switch: each child has links of its own to each other one


def ranks_of(levels: Sequence[Level]) -> int:
    """All GPUs below the last level."""
    return below(levels)[-1]


def below(levels: Sequence[Level]) -> list[int]:
    """GPUs below one child of each level, and at the end all."""
    return list(accumulate((level.children for level in levels), mul, initial=1))


def all_gather(size: float, levels: Sequence[Level]) -> float:
    """The longest: size max_i (D_i - 1) / (D_i W_i); a ReduceScatter takes as long, an AllReduce twice that."""
    return max((collectives.all_gather(size, one.children, one.rate) for one in levels), default=0.0)


def usable_rate(levels: Sequence[Level]) -> float:
    """min_i D_i W_i / (D_i - 1): what an AllGather or ReduceScatter moves in a second."""
    return 1 / all_gather(1.0, levels)


def reduce_scatter(size: float, levels: Sequence[Level], inner: int = 1) -> float:
    """Of an array that is sharded over `inner` neighbouring GPUs besides: max_i size (D-1) S / (D max(Y, S) W).

    S are the GPUs below one child. For nodes that is size D_node / (W_node max(D_node, Y)) in the limit of many; the
    source's formula for any tree has no S above the line, where its W is the rate of one GPU's share of the link.
    """
    times = (
        collectives.reduce_scatter(size * width / max(inner, width), one.children, one.rate)
        for one, width in zip(levels, below(levels), strict=False)
        if width * one.children > inner
    )
    return max(times, default=0.0)


def all_to_all(size: float, levels: Sequence[Level]) -> float:
    """What leaves a child for anywhere else, by its rate; over M nodes size (M-1) / (M² W_node)."""
    return max((size * time for time, _ in _exchanges(levels)), default=0.0)


def slowest_exchange(levels: Sequence[Level]) -> Level:
    """The level that holds an AllToAll."""
    return max(_exchanges(levels), key=lambda timed: timed[0])[1]


def _exchanges(levels: Sequence[Level]) -> Iterator[tuple[float, Level]]:
    """The seconds that each level takes for a byte."""
    every = ranks_of(levels)
    for one, width in zip(levels, below(levels), strict=False):
        yield width * (every - width) / every**2 / one.rate if one.children > 1 else 0.0, one


def slowest(levels: Sequence[Level]) -> Level:
    """The level that holds an AllGather."""
    return max(levels, key=lambda one: collectives.all_gather(1.0, one.children, one.rate))


def group(levels: Sequence[Level], ranks: int, stride: int = 1) -> tuple[Level, ...]:
    """The levels as `ranks` GPUs see them of which each is `stride` behind the last, while all such groups are busy.

    The members below one child share its link with the other groups that have members there. In a mesh a group has the
    links between its members: a pair of eight MI300X a seventh of what one GPU can send.
    """
    return tuple(_seen(levels, ranks, stride))


def _seen(levels: Sequence[Level], ranks: int, stride: int) -> Iterator[Level]:
    for one, (lower, upper) in zip(levels, pairwise(below(levels)), strict=True):
        inside, among = (max(1, min(ranks, -(-width // stride))) for width in (lower, upper))
        children = -(-among // inside)
        if children > 1:
            # No more groups than GPUs are below a child, and no fewer than one.
            share = min(1.0, inside / lower) * ((children - 1) / (one.children - 1) if one.mesh else 1.0)
            yield replace(one, children=children, rate=one.rate * share)


def slowed(levels: Sequence[Level], left: Mapping[str, float]) -> tuple[Level, ...]:
    """The levels where one child of those named has only a share of its rate left: all others wait for it."""
    return tuple(replace(one, rate=one.rate * left.get(one.name, 1.0)) for one in levels)


_TAKES = {"all_reduce": all_gather, "all_gather": all_gather, "reduce_scatter": all_gather, "alltoall": all_to_all}


def slowdown(op: str, levels: Sequence[Level], left: Mapping[str, float]) -> float:
    """How many times longer a collective of long messages takes then; 1.0 where another level held it and still does.

    Levels that are not there change nothing. KeyError: an operation other than all_reduce, all_gather, reduce_scatter
    and alltoall; ValueError: a level with nothing left.
    """
    if any(share <= 0 for share in left.values()):
        raise ValueError("a link that carries nothing ends a collective: there is no slowdown")
    takes = _TAKES[op]
    whole = takes(1.0, levels)
    return takes(1.0, slowed(levels, left)) / whole if whole else 1.0
