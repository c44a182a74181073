"""What is known of the ways in which collectives move an array, worked out of what was measured.

Each is the median over platforms, of the same links where such were measured. Shares of rated rates inside a node are
those of links.toml; all else is in collectives.toml.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from ..bandwidth.efficiency import attainable
from ..catalog.collectives import Collective, collectives
from ..catalog.links import Links
from . import network_tiers as over
from .collectives import bus_factor
from .network_tiers import Level

_SWITCHED = 8  # ranks with which bus bandwidths of reductions in the switches were measured


@dataclass(frozen=True, slots=True)
class Way:
    """The share of the rated rate that long messages reach, and how a message begins.

    `startup` and `latency` are seconds of one step of a ring (of a tree, the latency), of one hop between nodes, of one
    peer of an AllToAll; else of the whole. What `startup` and `power` mean, message_times.py tells.
    """

    share: float
    startup: float
    power: float
    latency: float


@dataclass(frozen=True, slots=True)
class Ways:
    """All of them, of clusters whose nodes have one kind of links."""

    ring: Way
    switched: Way  # reduced in the switches of a node; the share is that at which the array passes once
    direct: Way  # AllToAll in a node
    fabric: Way  # rings and trees from node to node
    direct_fabric: Way  # AllToAll from node to node


@lru_cache(maxsize=64)
def known_ways(grade: str) -> Ways:
    """Of nodes whose GPUs have such links ("nvlink4"), of everything that the catalog holds. LookupError as below."""
    return ways_of(grade)


def ways_of(grade: str, links: Links | None = None, rows: Iterable[Collective] | None = None) -> Ways:
    """The same of other rows. LookupError: nothing is published of collectives over such links."""
    measured = list(collectives() if rows is None else rows)
    ring = attainable(grade, "all_reduce", known=links)
    if ring is None:
        raise LookupError(f"nothing is published of collectives over {grade}")
    switched = attainable(grade, "all_reduce-nvls", known=links) or ring
    in_node = [one for one in measured if one.nodes == 1]
    reduced = [one for one in in_node if one.op == "all_reduce"]
    exchanged = [one for one in in_node if one.op == "alltoall"]
    stand_ins = (
        [] if any(one.startup for one in exchanged) else [_as_exchange(one) for one in reduced if one.way == "ring"]
    )
    across = [one for one in measured if one.nodes > 1]
    return Ways(
        ring=_way(grade, [one for one in reduced if one.way == "ring"], _steps, ring.typical, _depth),
        switched=_way(
            grade,
            [one for one in reduced if one.way == "in-network"],
            _once,
            switched.typical / bus_factor("all_reduce", _SWITCHED),
        ),
        direct=_way(grade, [*exchanged, *stand_ins], _peers),
        fabric=_way("", [one for one in across if one.op == "all_reduce"], _hops),
        direct_fabric=_way("", [one for one in across if one.op == "alltoall"], _peers),
    )


def _way(
    grade: str,
    rows: Sequence[Collective],
    times: Callable[[Collective], float],
    share: float | None = None,
    depth: Callable[[Collective], float] | None = None,
) -> Way:
    """Medians over the rows of a grade, or over all where it has none.

    `times` says how often a row begins, `depth` how often its smallest message does, where that is less.
    """
    deep = depth or times

    def median(value: Callable[[Collective], float | None], default: float) -> float:
        known = [one for one in rows if value(one) is not None]
        return _median([one for one in known if one.grade == grade] or known, value, default)

    return Way(
        share=median(_share, 1.0) if share is None else share,
        startup=median(lambda one: one.startup and one.startup / times(one), 0.0),
        power=median(lambda one: one.power, 1.0),
        latency=median(lambda one: one.latency and one.latency / deep(one), 0.0),
    )


def _median(rows: Iterable[Collective], value: Callable[[Collective], float | None], default: float) -> float:
    """Each platform has one vote."""
    votes = defaultdict[str, list[float]](list)
    for one in rows:
        votes[one.platform].append(value(one) or 0.0)
    return statistics.median([statistics.median(several) for several in votes.values()] or [default])


def _share(one: Collective) -> float | None:
    """Of the bus bandwidth that rated rates allow, what was measured."""
    return one.bus / rated_bus(one) if one.bus else None


def rated_bus(one: Collective) -> float:
    """Bus bandwidth of long messages if the link that `rate` is of were all that holds them, at that rate."""
    free = math.inf if one.nodes > 1 else one.rate
    levels = [Level("node", one.ranks // one.nodes, free), Level("fabric", one.nodes, one.rate)]
    takes = over.all_to_all(one.ranks, levels) if one.op == "alltoall" else 2 * over.all_gather(1.0, levels)
    return bus_factor(one.op, one.ranks) / takes


def _once(one: Collective) -> float:
    return 1.0


def _steps(one: Collective) -> float:
    """Of a ring, one after another."""
    return 2 * (one.ranks - 1)


def _depth(one: Collective) -> float:
    """Of a tree over the GPUs of a node, up and down: small messages go that way."""
    return 2 * math.ceil(math.log2(one.ranks))


def _hops(one: Collective) -> float:
    """From node to node, up a tree and down again."""
    return 2 * math.ceil(math.log2(one.nodes))


def _peers(one: Collective) -> float:
    """GPUs each of which gets a message of its own: those of other nodes where there are several."""
    return one.ranks - (one.ranks / one.nodes if one.nodes > 1 else 1)


def _as_exchange(one: Collective) -> Collective:
    """A ring's startup where nobody published one of an AllToAll: a step for each peer, a ring has two."""
    startup = one.startup and one.startup / 2
    return msgspec.structs.replace(one, op="alltoall", bus=None, startup=startup, latency=None)
