"""Fabrics: which levels a cluster has, from the ports of its switches, and what is lost where one part is slow.

Rates are bytes per second and one direction. Sources: "How to Scale Your Model", the chapters on GPUs (levels of a
SuperPod) and on sharded matrices (tori); NVIDIA, DGX SuperPOD reference architecture with H100 (units of 32 nodes with
a leaf for each rail); Leiserson, "Fat-Trees" (1985).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .network_tiers import Level, below, ranks_of, slowdown

# Which levels carry less where a part is slow: 0 joins GPUs, 1 nodes (or NVLink domains), 2 leaves.
_TOUCHES = {"port": (1,), "node": (0, 1), "leaf": (1, 2)}


@dataclass(frozen=True, slots=True)
class Node:
    """What each node has: GPUs that reach each other at `rate`, and NICs of `nic_rate`; an NVLink domain is one too."""

    gpus: int
    rate: float
    nics: int
    nic_rate: float
    mesh: bool = False  # its GPUs are joined by links from each to each other one

    @property
    def egress(self) -> float:
        """Of all its NICs together."""
        return self.nics * self.nic_rate


@dataclass(frozen=True, slots=True)
class Switches:
    """Switches of a fabric: ports of one, `rate` of a port, and what is left upwards of a leaf's rate downwards.

    On rails NIC i of each node ends on leaf i of a unit, and a unit has as many nodes as a leaf has ports down; else
    all NICs of a node end on one leaf.
    """

    radix: int
    rate: float
    oversubscription: float = 1.0
    rails: bool = False


def domain(gpus: int, rate: float, trays: int, nics: int, nic_rate: float) -> Node:
    """An NVLink domain of several trays (GB200 NVL72: 18 of 4 GPUs and 4 NICs) as a node."""
    return Node(gpus * trays, rate, nics * trays, nic_rate)


def nvswitch_rates(node: Node, switches: int, ports: int, port_rate: float) -> tuple[float, float]:
    """What the switches of a node can move, and what its GPUs can use of it."""
    whole = switches * ports * port_rate
    return whole, min(whole, node.gpus * node.rate)


def fat_tree(node: Node, nodes: int, switches: Switches) -> tuple[Level, ...]:
    """The levels of a tree: GPUs, and then nodes, leaves and pods of leaves, as many of them as there are.

    ValueError: no nodes, a leaf without ports for a node, or more nodes than three tiers of such switches reach.
    """
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: a fabric has one at least")
    if switches.oversubscription < 1:
        raise ValueError(f"oversubscription {switches.oversubscription:g}: 1 is none, 2 is twice as much down as up")
    leaves = node.nics if switches.rails else 1
    unit = _unit(node, switches)
    units = -(-nodes // unit)
    pod = max(1, switches.radix // 2 // leaves)
    if units > pod * switches.radix:
        raise ValueError(
            f"{nodes} nodes: three tiers of switches with {switches.radix} ports reach {pod * switches.radix * unit}"
        )
    one_pod = units <= max(1, switches.radix // leaves)
    counts = [min(nodes, unit), units] if one_pod else [unit, pod, -(-units // pod)]
    up = unit * node.egress / switches.oversubscription
    rates = [node.egress, up, pod * up]
    fabric = (Level(*level) for level in zip(("leaf", "spine", "core"), counts, rates, strict=False))
    return Level("node", node.gpus, node.rate, node.mesh), *(one for one in fabric if one.children > 1)


def _unit(node: Node, switches: Switches) -> int:
    """How many nodes the leaves of a unit take: o parts of the ports go down for one part up."""
    down = math.floor(switches.radix * switches.oversubscription / (1 + switches.oversubscription))
    ports = 1 if switches.rails else math.ceil(node.egress / switches.rate)
    if ports > down:
        raise ValueError(f"a node with {ports} ports does not fit on a leaf with {down} ports down")
    return down // ports


def bisection(levels: Sequence[Level]) -> float:
    """What half of all GPUs can send to the others at once, one way: the least that the children of a level can.

    Sources add both directions up: their 3.6 TB/s of 8 H100 are 1.8 each way.
    """
    every = ranks_of(levels)
    return min((one.rate * every / width / 2 for one, width in zip(levels, below(levels), strict=False)), default=0.0)


def torus_bisection(shape: Sequence[int], rate: float) -> float:
    """Of a torus with `rate` to each neighbour: its longest axis is cut at two places, for each axis is a ring."""
    longest = max(shape)
    return math.prod(shape) / longest * rate * _ways(longest)


def torus_all_gather(size: float, shape: Sequence[int], rate: float) -> float:
    """Over all axes at once and both ways round each: size (N-1) / (N ways rate).

    "How to Scale Your Model", sharded matrices: V / (W N_axes), with W of a link both ways.
    """
    ranks, ways = math.prod(shape), sum(map(_ways, shape))
    return size * (ranks - 1) / (ranks * ways * rate) if ways else 0.0


def torus_all_to_all(size: float, shape: Sequence[int], rate: float) -> float:
    """A quarter of the array passes the bisection each way; on one ring size / (8 rate): that source's V / (4 W)."""
    cut = torus_bisection(shape, rate)
    return size / 4 / cut if cut else 0.0


def _ways(axis: int) -> int:
    """Links that lead from one GPU along an axis: two are joined once."""
    return min(axis - 1, 2)


def slow(levels: Sequence[Level], part: str, left: float, nics: int = 1, even: bool = True) -> Mapping[str, float]:
    """Which share each level has left where one "port" of a node, one "node" or one "leaf" has only `left` of its rate.

    NCCL gives each NIC an equal part, so that a node with one slow port among several waits for it; `even` false is
    what would be if each NIC got as much as it moves. A slow node is slow on NVLink and at its NICs.
    """
    share = left if even or part != "port" else 1 - (1 - left) / nics
    return {levels[index].name: share for index in _TOUCHES[part] if index < len(levels)}


def cost(levels: Sequence[Level], left: Mapping[str, float]) -> dict[str, float]:
    """How many times longer the collectives over all GPUs take where levels have only a share left."""
    return {op: slowdown(op, levels, left) for op in ("all_reduce", "all_gather", "reduce_scatter", "alltoall")}
