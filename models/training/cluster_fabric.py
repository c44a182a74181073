"""Fabrics: the network levels of a cluster from its switch ports, and the rates between its halves.

Rates are bytes per second and one direction. Sources: "How to Scale Your Model", the chapters on GPUs (levels of a
SuperPod) and on sharded matrices (tori); NVIDIA, DGX SuperPOD reference architecture with H100 (units of 32 nodes with
a leaf for each rail); Leiserson, "Fat-Trees" (1985).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from ..bandwidth.network_tiers import Level, below, ranks_of


class Node(Struct, frozen=True):
    """One node: GPUs that reach each other at `rate`, and NICs of `nic_rate` each. An NVLink domain is a node too."""

    gpus: int
    rate: float
    nics: int
    nic_rate: float
    mesh: bool = False  # direct links connect each two GPUs
    cube: bool = False  # direct links connect neighbours in a hypercube

    @property
    def egress(self) -> float:
        """Rate of all its NICs together."""
        return self.nics * self.nic_rate


class Switches(Struct, frozen=True):
    """The switches of a fabric: ports per switch, rate per port, and the ratio of a leaf's rate downwards to upwards.

    With rails, NIC i of each node connects to leaf i of a unit, and a unit has as many nodes as a leaf has ports
    downwards. Without rails, all NICs of a node connect to one leaf.
    """

    radix: int
    rate: float
    oversubscription: float = 1.0
    rails: bool = False


def domain(gpus: int, rate: float, trays: int, nics: int, nic_rate: float) -> Node:
    """An NVLink domain of several trays (GB200 NVL72: 18 trays of 4 GPUs and 4 NICs) as one node."""
    return Node(gpus * trays, rate, nics * trays, nic_rate)


def nvswitch_rates(gpus: int, rate: float, switches: int, ports: int, port_rate: float) -> tuple[float, float]:
    """The total rate of a node's switches, and the part of it that its GPUs can use."""
    whole = switches * ports * port_rate
    return whole, min(whole, gpus * rate)


def fat_tree(node: Node, nodes: int, switches: Switches) -> tuple[Level, ...]:
    """The levels of a fat tree: GPUs, then nodes, leaves and pods of leaves, as far as they exist.

    ValueError: no nodes, too few leaf ports for a node, or more nodes than three tiers of these switches reach.
    """
    if nodes < 1:
        raise ValueError(f"{nodes} nodes: at least one node is required")
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
    return Level("node", node.gpus, node.rate, node.mesh, node.cube), *(one for one in fabric if one.children > 1)


def _unit(node: Node, switches: Switches) -> int:
    """The number of nodes below the leaves of a unit. With oversubscription o, o of o + 1 ports go down."""
    down = math.floor(switches.radix * switches.oversubscription / (1 + switches.oversubscription))
    ports = 1 if switches.rails else math.ceil(node.egress / switches.rate)
    if ports > down:
        raise ValueError(f"a node with {ports} ports does not fit on a leaf with {down} ports downwards")
    return down // ports


def bisection(levels: Sequence[Level]) -> float:
    """The rate from one half of the GPUs to the other, in one direction: the minimum over all levels.

    Data sheets add both directions: 3.6 TB/s for 8 H100 is 1.8 TB/s in each.
    """
    every = ranks_of(levels)
    return min((one.rate * every / width / 2 for one, width in zip(levels, below(levels), strict=False)), default=0.0)


def torus_bisection(shape: Sequence[int], rate: float) -> float:
    """For a torus with `rate` to each neighbour: its longest axis is a ring, so the cut has two places."""
    longest = max(shape)
    return math.prod(shape) / longest * rate * _links_along(longest)


def torus_all_gather(size: float, shape: Sequence[int], rate: float) -> float:
    """Over all axes and in both directions at once: size (N-1) / (N links rate).

    "How to Scale Your Model", sharded matrices: V / (W N_axes), where W is a link's rate in both directions.
    """
    ranks, links = math.prod(shape), sum(map(_links_along, shape))
    return size * (ranks - 1) / (ranks * links * rate) if links else 0.0


def torus_all_to_all(size: float, shape: Sequence[int], rate: float) -> float:
    """A quarter of the array crosses the bisection in each direction. On one ring: size / (8 rate), in the source V /
    (4 W).
    """
    cut = torus_bisection(shape, rate)
    return size / 4 / cut if cut else 0.0


def _links_along(axis: int) -> int:
    """The number of links of a GPU along an axis. Two GPUs share one link."""
    return min(axis - 1, 2)
