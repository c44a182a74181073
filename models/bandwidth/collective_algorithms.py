"""Parameters of collective algorithms, computed from measurements.

Each parameter is the median over platforms: those of the same machine type, else of the same kind of links. Shares of
rated rates inside a node come from links.toml, all others from collectives.toml.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.collectives import Collective, collectives
from ..catalog.links import Links
from ..facts.averages import median
from . import network_tiers as over
from .collectives import bus_factor
from .efficiency import Attainable, attainable, family, interval
from .network_tiers import Level

_SWITCHED = 8  # number of ranks in the measured bus bandwidths of reductions in switches
# Startup times of the same links differ between machines by up to this factor. The fits of 8 A100 are 105 and 115 us,
# of 8 H100 and H200 63 and 76 us; the published latencies of two p5 are 55 and 65 us.
SPREAD = 1.4
RING, SWITCHED, DIRECT, SENT = "all_reduce", "all_reduce-nvls", "alltoall", "sendrecv"
_MEASURED_AS = {SENT: "send"}  # operation -> the one in links.toml


class Algorithm(Struct, frozen=True):
    """Parameters of one algorithm: the share of the rated rate for long messages, and the startup time of a message.

    `startup` and `latency` are seconds per step of a ring (latency: of a tree), per hop between nodes, or per peer of
    an AllToAll; else for the whole message. message_times.py defines `startup` and `power`. `low` and `high` bound the
    share.
    """

    share: float
    startup: float
    power: float
    latency: float
    low: float
    high: float
    source: str = ""


class Algorithms(Struct, frozen=True):
    """All algorithms, for clusters whose nodes have one kind of links, by operation.

    Inside a node: rings for all_reduce, all_gather, reduce_scatter and broadcast; "all_reduce-nvls" is reduced in the
    switches, with the share of the rate at which the array passes once; alltoall and sendrecv are direct. Between
    nodes: "all_reduce" has rings and trees.
    """

    near: Mapping[str, Algorithm]
    far: Mapping[str, Algorithm]

    def each(self) -> tuple[Algorithms, Algorithms, Algorithms]:
        """The parameters of the slowest, usual and fastest good machines."""
        slow, fast = (
            Algorithms(*({op: _bound(one, slow) for op, one in each.items()} for each in (self.near, self.far)))
            for slow in (True, False)
        )
        return slow, self, fast


def _bound(one: Algorithm, slow: bool) -> Algorithm:
    factor = SPREAD if slow else 1 / SPREAD
    share = one.low if slow else one.high
    return replace(one, share=share, startup=one.startup * factor, latency=one.latency * factor)


@lru_cache(maxsize=64)
def known_algorithms(grade: str, machine: str = "") -> Algorithms:
    """The catalog's algorithms for nodes with these GPU links ("nvlink4"). LookupError as in `algorithms_of`."""
    return algorithms_of(grade, machine=machine)


def algorithms_of(
    grade: str, links: Links | None = None, rows: Iterable[Collective] | None = None, machine: str = ""
) -> Algorithms:
    """The algorithms from the given rows. LookupError: nothing is published about collectives over such links.

    `machine` is the name of a machine type. Rows that were measured on this type replace all others.
    """
    measured = list(collectives() if rows is None else rows)
    ring = attainable(grade, RING, known=links)
    if ring is None:
        raise LookupError(f"nothing is published of collectives over {grade}")
    known = _Known(family(grade), machine)
    in_node = [one for one in measured if one.nodes == 1]
    reduced = [one for one in in_node if one.op == RING]
    rings = [one for one in reduced if one.way == "ring"]
    exchanged = [one for one in in_node if one.op == DIRECT]
    stand_ins = [] if any(one.startup for one in exchanged) else [_as_exchange(one) for one in rings]
    across = [one for one in measured if one.nodes > 1]
    near = {
        op: _algorithm(known, rings, _steps, attainable(grade, _MEASURED_AS.get(op, op), known=links) or ring, _depth)
        for op in (RING, "all_gather", "reduce_scatter", "broadcast", SENT)
    }
    once = 1 / bus_factor(RING, _SWITCHED)
    switched = _scaled(attainable(grade, SWITCHED, known=links) or ring, once)
    near[SWITCHED] = _algorithm(known, [one for one in reduced if one.way == "in-network"], _once, switched)
    direct = attainable(grade, DIRECT, known=links) or ring
    near[DIRECT] = _algorithm(known, [*exchanged, *stand_ins], _peers, direct)
    anywhere = _Known("", machine)
    rows_of = {op: [one for one in across if one.op == op] for op in (RING, DIRECT, SENT)}
    far = {
        op: _algorithm(anywhere, rows_of[op], times, _of_rows(anywhere, rows_of[op]))
        for op, times in ((RING, _hops), (DIRECT, _peers))
    }
    far[SENT] = _sent(far[RING], anywhere, rows_of[SENT])
    return Algorithms(near, far)


def _sent(ring: Algorithm, known: _Known, rows: Sequence[Collective]) -> Algorithm:
    """Messages between two nodes. Their startup times are not published; those of a hop of a ring apply."""
    if not rows:
        return ring
    share = _of_rows(known, rows)
    latency = _median(known.nearest(rows), lambda one: one.latency, ring.latency)
    return replace(ring, share=share.typical, low=share.low, high=share.high, latency=latency, source=share.source)


def _scaled(share: Attainable, factor: float) -> Attainable:
    return replace(share, low=share.low * factor, typical=share.typical * factor, high=share.high * factor)


class _Known(Struct, frozen=True):
    """The links and the machine type that the parameters are for. No grade: all rows are equally near."""

    grade: str
    machine: str

    def nearest(self, rows: Sequence[Collective]) -> Sequence[Collective]:
        """Rows of the machine type; else of the grade, of the kind of links, or all."""
        kind = self.grade.rstrip("0123456789")
        tried: Iterator[list[Collective]] = (
            [one for one in rows if fits(one)]
            for fits in (
                lambda one: bool(self.machine) and self.machine in one.machines,
                lambda one: one.grade == self.grade,
                lambda one: one.grade.rstrip("0123456789") == kind,
            )
        )
        return next(filter(None, tried), rows)


def _of_rows(known: _Known, rows: Sequence[Collective]) -> Attainable:
    """The shares that rows between nodes reach of the rated rate. Without rows all of it."""
    chosen = known.nearest([one for one in rows if one.bus])
    if not chosen:
        return Attainable(1.0, 1.0, 1.0, "")
    votes = defaultdict[str, list[float]](list)
    for one in chosen:
        votes[one.platform].append((one.bus or 0.0) / rated_bus(one))
    source = ", ".join(f"{one.platform} {(one.bus or 0.0) / 1e9:.4g}" for one in chosen[:2])
    return interval(votes, f"GB/s measured: {source}{f' and {len(chosen) - 2} more' if len(chosen) > 2 else ''}")


def _algorithm(
    known: _Known,
    rows: Sequence[Collective],
    times: Callable[[Collective], float],
    share: Attainable,
    depth: Callable[[Collective], float] | None = None,
) -> Algorithm:
    """Medians over the nearest rows.

    `times` is the number of startups of a row. `depth` is the number for its smallest message, if lower.
    """
    deep = depth or times

    def median(value: Callable[[Collective], float | None], default: float) -> float:
        return _median(known.nearest([one for one in rows if value(one) is not None]), value, default)

    return Algorithm(
        share=share.typical,
        startup=median(lambda one: one.startup and one.startup / times(one), 0.0),
        power=median(lambda one: one.power, 1.0),
        latency=median(lambda one: one.latency and one.latency / deep(one), 0.0),
        low=share.low,
        high=share.high,
        source=share.source,
    )


def _median(rows: Iterable[Collective], value: Callable[[Collective], float | None], default: float) -> float:
    """The median over platforms; each platform has one vote."""
    votes = defaultdict[str, list[float]](list)
    for one in rows:
        votes[one.platform].append(value(one) or 0.0)
    return median([median(several) for several in votes.values()] or [default])


def rated_bus(one: Collective) -> float:
    """Bus bandwidth of long messages if the links of `rate` are the only limit and reach their rated rate."""
    if one.op == SENT:
        return one.rate
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
    return replace(one, op="alltoall", bus=None, startup=startup, latency=None)
