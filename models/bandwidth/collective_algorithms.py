"""Parameters of collective algorithms, computed from measurements.

Each parameter is the median over platforms: those of the same machine type, else of the same kind of links. Shares of
rated rates inside a node come from links.toml, all others from collectives.toml.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.collectives import SOMETIMES_LL128, Collective, Transport, collectives, transport_of
from ..catalog.links import Links
from ..catalog.nearest_collectives import Nearest, converted, library_of, median_of, startup_of, votes_of
from ..facts.averages import median
from . import network_tiers as over
from .collectives import bus_factor
from .efficiency import Attainable, attainable, family, interval
from .network_tiers import Level

_SWITCHED = 8  # number of ranks in the measured bus bandwidths of reductions in switches
# Startup times differ between good machines at least by this factor. The fits of 8 A100 are 105 and 115 us, of 8 H100
# and H200 63 to 76 us; the published latencies of two p5 are 55 and 65 us. Beyond the extremes of one, two, three and
# more platforms there is a margin. With both, nine of ten published rates are inside the interval that the other
# platforms give (bench/accuracy/collectives/collective_curves.py).
SPREAD = 1.4
_MARGINS, _MARGINS_BETWEEN = (2.0, 1.6, 1.3), (3.0, 2.0, 1.5)  # inside a node, between nodes
_SINGLE = 2.0  # spread of a machine type of which one source is known
_OTHER_LINKS = 1.5  # factor on the spread if no row is of the grade
# Factor on the low, and its inverse on the high, of shares between nodes that one, two, three, four and more platforms
# have: they differ more than those of links inside a node.
_BETWEEN = (0.65, 0.8, 0.9, 0.9, 1.0)
RING, SWITCHED, DIRECT, SENT = "all_reduce", "all_reduce-nvls", "alltoall", "sendrecv"
ONCE = "-once"  # suffix: trees over two nodes, which pass each NIC with the array once
_GATHERS = ("all_gather", "reduce_scatter")
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
    once: bool = False  # between two nodes, an AllReduce passes each NIC with the array once, instead of twice
    quickest_once: bool = False  # the same of the fastest good machines: also if nobody measured two such nodes
    ll128: bool = False  # between nodes, the measured machines use the protocol Simple only, this one LL128 too
    quickest_ll128: bool = False  # the same of the fastest good machines
    spread: float = SPREAD  # factor on startup and latency of the slowest good machines, and divisor of the fastest


class Algorithms(Struct, frozen=True):
    """All algorithms, for clusters whose nodes have one kind of links, by operation.

    Inside a node: rings for all_reduce, all_gather, reduce_scatter and broadcast; "all_reduce-nvls" is reduced in the
    switches, with the share of the rate at which the array passes once; alltoall and sendrecv are direct. Between
    nodes: "all_reduce-nvls" is for nodes whose switches reduce, "all_reduce" for all others.
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
    factor = one.spread if slow else 1 / one.spread
    share = one.low if slow else one.high
    once = one.once or (one.quickest_once and not slow)
    ll128 = one.ll128 or (one.quickest_ll128 and not slow)
    startup, latency = one.startup * factor, one.latency * factor
    return replace(one, share=share, startup=startup, latency=latency, once=once, ll128=ll128)


@lru_cache(maxsize=64)
def known_algorithms(grade: str, machine: str = "") -> Algorithms:
    """The catalog's algorithms for nodes with these GPU links ("nvlink4"). LookupError as in `algorithms_of`."""
    return algorithms_of(grade, machine=machine)


def algorithms_of(
    grade: str,
    links: Links | None = None,
    rows: Iterable[Collective] | None = None,
    machine: str = "",
    transport: Transport | None = None,
) -> Algorithms:
    """The algorithms from the given rows. LookupError: nothing is published about collectives over such links.

    `machine` is the name of a machine type. Rows that were measured on this type replace all others. `transport` is by
    default that of the machine type.
    """
    measured = [one for one in (collectives() if rows is None else rows) if not one.only or machine in one.machines]
    ring = attainable(grade, RING, known=links)
    if ring is None:
        raise LookupError(f"nothing is published of collectives over {grade}")
    known = Nearest(family(grade), machine)
    in_node = [one for one in measured if one.nodes == 1]
    reduced = [one for one in in_node if one.op == RING]
    rings = [one for one in in_node if one.way == "ring"]
    exchanged = [one for one in in_node if one.op == DIRECT]
    stand_ins = [] if any(one.startup for one in exchanged) else [_as_exchange(one) for one in rings]
    near = {
        op: _algorithm(known, rings, _steps, attainable(grade, _MEASURED_AS.get(op, op), known=links) or ring, _depth)
        for op in (RING, "all_gather", "reduce_scatter", "broadcast", SENT)
    }
    once = 1 / bus_factor(RING, _SWITCHED)
    switched = _scaled(attainable(grade, SWITCHED, known=links) or ring, once)
    near[SWITCHED] = _algorithm(known, [one for one in reduced if one.way == "in-network"], _once, switched)
    direct = attainable(grade, DIRECT, known=links) or ring
    near[DIRECT] = _algorithm(known, [*exchanged, *stand_ins], _peers, direct)
    carrier = transport or transport_of(machine)
    between = replace(known, grade="", transport=carrier, library=library_of(grade))  # the GPU links do not matter
    far = _between([one for one in measured if one.nodes > 1], between)
    return Algorithms(near, {op: replace(one, quickest_ll128=carrier in SOMETIMES_LL128) for op, one in far.items()})


def _between(rows: Sequence[Collective], known: Nearest) -> dict[str, Algorithm]:
    """Between nodes. An operation without rows of this machine type or transport uses those of the other rings."""
    reduced = [one for one in rows if one.op == RING]
    gathers = [one for one in rows if one.op in _GATHERS]
    either = replace(known, library=None)  # NICs and messages between pairs of GPUs take as long in both libraries
    rings = [one for one in (*reduced, *gathers) if one.way == "ring" and not one.once]
    own = {
        RING: [one for one in reduced if one.way == "ring"],
        SWITCHED: [one for one in reduced if one.way == "in-network"],
        "all_gather": gathers,
    }
    far = dict[str, Algorithm]()
    for op, mine in own.items():
        way: Literal["ring", "in-network"] = "in-network" if op == SWITCHED else "ring"
        others = [converted(one, op == "all_gather", way) for one in (*reduced, *gathers)]
        timed = ([one for one in each if one.startup or one.latency] for each in (mine, others))
        starts = known.first(timed)
        trees = [one for one in mine if one.once]
        through = [one for one in mine if one.way == "in-network" and not one.once]
        shares = (_of_rows(either, either.first((_with_bus(some), _with_bus(rings)))) for some in (through, trees))
        far[op], far[op + ONCE] = (_algorithm(known, starts, _hops, share, _levels) for share in shares)
        once, possible = _once_of(known, mine)
        far[op] = replace(far[op], once=once, quickest_once=possible)
    exchanged = [one for one in rows if one.op == DIRECT]
    far[DIRECT] = _algorithm(either, exchanged, _peers, _of_rows(either, exchanged))
    far |= {"broadcast": far[RING], "reduce_scatter": far["all_gather"]}
    return far | {SENT: _sent(far[RING], known, [one for one in rows if one.op == SENT])}


def _with_bus(rows: Sequence[Collective]) -> list[Collective]:
    return [one for one in rows if one.bus]


def _once_of(known: Nearest, rows: Sequence[Collective]) -> tuple[bool, bool]:
    """Whether trees over two nodes were faster than a ring on most platforms; and whether they may be, not measured."""
    pairs = known.nearest([one for one in rows if one.op == RING and one.nodes == 2 and (one.bus or one.once)])
    once = 2 * sum(one.once for one in pairs) > len(pairs)
    return once, once or not known.of_transport(pairs)


def _sent(ring: Algorithm, known: Nearest, rows: Sequence[Collective]) -> Algorithm:
    """Messages between two nodes. Their startup times are not published; those of a hop of a ring apply."""
    if not rows:
        return ring
    share = _of_rows(known, rows)
    latency = median_of(known.nearest(rows), lambda one: one.latency, ring.latency)
    return replace(ring, share=share.typical, low=share.low, high=share.high, latency=latency, source=share.source)


def _scaled(share: Attainable, factor: float) -> Attainable:
    return replace(share, low=share.low * factor, typical=share.typical * factor, high=share.high * factor)


def _of_rows(known: Nearest, rows: Sequence[Collective]) -> Attainable:
    """The shares that rows between nodes reach of the rated rate. Without rows all of it."""
    chosen = known.nearest(_with_bus(rows))
    if not chosen:
        return Attainable(0.5, 0.85, 1.0, "")
    votes = defaultdict[str, list[float]](list)
    for one in chosen:
        votes[one.platform].append((one.bus or 0.0) / rated_bus(one))
    source = ", ".join(f"{one.platform} {(one.bus or 0.0) / 1e9:.4g}" for one in chosen[:2])
    more = f" and {len(chosen) - 2} more" if len(chosen) > 2 else ""
    found = interval(votes, f"GB/s measured: {source}{more}")
    wider = _BETWEEN[min(len(votes), len(_BETWEEN)) - 1]
    return replace(found, low=found.low * wider, high=min(1.0, found.high / wider))


def _algorithm(
    known: Nearest,
    rows: Sequence[Collective],
    times: Callable[[Collective], float],
    share: Attainable,
    depth: Callable[[Collective], float] | None = None,
) -> Algorithm:
    """Medians over the nearest rows.

    `times` is the number of startups of a row. `depth` is the number for its smallest message, if lower.
    """
    deep = depth or times

    def middle(value: Callable[[Collective], float | None], default: float) -> float:
        return median_of(known.nearest([one for one in rows if value(one) is not None]), value, default)

    startup, power = startup_of(known.nearest([one for one in rows if one.startup]), times)
    return Algorithm(
        share=share.typical,
        startup=startup,
        power=power,
        latency=middle(lambda one: one.latency and one.latency / deep(one), 0.0),
        low=share.low,
        high=share.high,
        source=share.source,
        spread=_spread(known, [one for one in rows if one.startup], times),
    )


def _spread(known: Nearest, rows: Sequence[Collective], times: Callable[[Collective], float]) -> float:
    near = known.nearest(rows)
    votes = votes_of(near, lambda one: one.startup and one.startup / times(one))
    if not votes or any(known.machine in one.machines for one in near):
        return SPREAD if len(votes) > 1 else _SINGLE
    margins = _MARGINS_BETWEEN if known.transport else _MARGINS
    usual, margin = median(votes), margins[min(len(votes), len(margins)) - 1]
    spread = max(SPREAD, margin * max(max(votes) / usual, usual / min(votes)))
    alike = any(known.transport in (one.transport, None) and known.grade in (one.grade, "") for one in near)
    return spread if alike else spread * _OTHER_LINKS


def rated_bus(one: Collective) -> float:
    """Bus bandwidth of long messages if the links of `rate` are the only limit and reach their rated rate."""
    if one.op == SENT:
        return one.rate
    free = math.inf if one.nodes > 1 else one.rate
    inside = one.ranks // one.nodes
    levels = [Level("node", inside, free), Level("fabric", one.nodes, one.rate)]
    if one.op == DIRECT:
        takes = over.all_to_all(one.ranks, levels)
    else:
        takes = over.between(one.op, inside, levels[1:], one.once)
    return bus_factor(one.op, one.ranks) / takes


def _once(one: Collective) -> float:
    return 1.0


def _steps(one: Collective) -> float:
    """Consecutive steps of a ring."""
    return _passes(one) * (one.ranks - 1)


def _depth(one: Collective) -> float:
    """Steps of a tree over the GPUs of a node, up and down, for small messages."""
    return _passes(one) * math.ceil(math.log2(one.ranks))


def _hops(one: Collective) -> float:
    """Hops between nodes."""
    return over.hops(one.op, one.ranks // one.nodes, one.nodes, one.way == "in-network")


def _levels(one: Collective) -> float:
    """Hops of a message of a few bytes between nodes."""
    return over.hops(one.op, 1, one.nodes)


def _passes(one: Collective) -> float:
    """Times that an array passes a ring."""
    return 1.0 if one.op in _GATHERS else 2.0


def _peers(one: Collective) -> float:
    """GPUs that each get their own message; with several nodes, the GPUs of other nodes."""
    return one.ranks - (one.ranks / one.nodes if one.nodes > 1 else 1)


def _as_exchange(one: Collective) -> Collective:
    """A substitute for an unpublished AllToAll startup: one step per peer. A ring has two."""
    startup = one.startup and one.startup / 2
    return replace(one, op="alltoall", bus=None, startup=startup, latency=None)
