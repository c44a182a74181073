"""Parameters of collective algorithms, computed from measurements.

Each parameter is the median over platforms, of the same kind of links if measured. Shares of rated rates inside a node
come from links.toml, all others from collectives.toml.
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

_SWITCHED = 8  # number of ranks in the measured bus bandwidths of reductions in switches


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Parameters of one algorithm: the share of the rated rate for long messages, and the startup time of a message.

    `startup` and `latency` are seconds per step of a ring (latency: of a tree), per hop between nodes, or per peer of
    an AllToAll; else for the whole message. message_times.py defines `startup` and `power`.
    """

    share: float
    startup: float
    power: float
    latency: float


@dataclass(frozen=True, slots=True)
class Algorithms:
    """All algorithms, for clusters whose nodes have one kind of links."""

    ring: Algorithm
    switched: Algorithm  # reduced in the switches of a node; share of the rate at which the array passes once
    direct: Algorithm  # AllToAll in a node
    fabric: Algorithm  # rings and trees between nodes
    direct_fabric: Algorithm  # AllToAll between nodes


@lru_cache(maxsize=64)
def known_algorithms(grade: str) -> Algorithms:
    """The catalog's algorithms for nodes with these GPU links ("nvlink4"). LookupError as in `algorithms_of`."""
    return algorithms_of(grade)


def algorithms_of(grade: str, links: Links | None = None, rows: Iterable[Collective] | None = None) -> Algorithms:
    """The algorithms from the given rows. LookupError: nothing is published about collectives over such links."""
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
    return Algorithms(
        ring=_algorithm(grade, [one for one in reduced if one.way == "ring"], _steps, ring.typical, _depth),
        switched=_algorithm(
            grade,
            [one for one in reduced if one.way == "in-network"],
            _once,
            switched.typical / bus_factor("all_reduce", _SWITCHED),
        ),
        direct=_algorithm(grade, [*exchanged, *stand_ins], _peers),
        fabric=_algorithm("", [one for one in across if one.op == "all_reduce"], _hops),
        direct_fabric=_algorithm("", [one for one in across if one.op == "alltoall"], _peers),
    )


def _algorithm(
    grade: str,
    rows: Sequence[Collective],
    times: Callable[[Collective], float],
    share: float | None = None,
    depth: Callable[[Collective], float] | None = None,
) -> Algorithm:
    """Medians over the rows of a grade, or over all rows if the grade has none.

    `times` is the number of startups of a row. `depth` is the number for its smallest message, if lower.
    """
    deep = depth or times

    def median(value: Callable[[Collective], float | None], default: float) -> float:
        known = [one for one in rows if value(one) is not None]
        return _median([one for one in known if one.grade == grade] or known, value, default)

    return Algorithm(
        share=median(_share, 1.0) if share is None else share,
        startup=median(lambda one: one.startup and one.startup / times(one), 0.0),
        power=median(lambda one: one.power, 1.0),
        latency=median(lambda one: one.latency and one.latency / deep(one), 0.0),
    )


def _median(rows: Iterable[Collective], value: Callable[[Collective], float | None], default: float) -> float:
    """The median over platforms; each platform has one vote."""
    votes = defaultdict[str, list[float]](list)
    for one in rows:
        votes[one.platform].append(value(one) or 0.0)
    return statistics.median([statistics.median(several) for several in votes.values()] or [default])


def _share(one: Collective) -> float | None:
    """The measured bus bandwidth as a share of the bus bandwidth at the rated rate."""
    return one.bus / rated_bus(one) if one.bus else None


def rated_bus(one: Collective) -> float:
    """Bus bandwidth of long messages if the links of `rate` are the only limit and reach their rated rate."""
    free = math.inf if one.nodes > 1 else one.rate
    levels = [Level("node", one.ranks // one.nodes, free), Level("fabric", one.nodes, one.rate)]
    takes = over.all_to_all(one.ranks, levels) if one.op == "alltoall" else 2 * over.all_gather(1.0, levels)
    return bus_factor(one.op, one.ranks) / takes


def _once(one: Collective) -> float:
    return 1.0


def _steps(one: Collective) -> float:
    """Consecutive steps of a ring."""
    return 2 * (one.ranks - 1)


def _depth(one: Collective) -> float:
    """Steps of a tree over the GPUs of a node, up and down, for small messages."""
    return 2 * math.ceil(math.log2(one.ranks))


def _hops(one: Collective) -> float:
    """Hops between nodes, up a tree and down."""
    return 2 * math.ceil(math.log2(one.nodes))


def _peers(one: Collective) -> float:
    """GPUs that each get their own message; with several nodes, the GPUs of other nodes."""
    return one.ranks - (one.ranks / one.nodes if one.nodes > 1 else 1)


def _as_exchange(one: Collective) -> Collective:
    """A substitute for an unpublished AllToAll startup: one step per peer. A ring has two."""
    startup = one.startup and one.startup / 2
    return msgspec.structs.replace(one, op="alltoall", bus=None, startup=startup, latency=None)
