"""The time of one collective on a cluster: the bound of its links, and the times that good machines reach.

The formulas of the bound are those of bandwidth/collectives.py and bandwidth/network_tiers.py at rated rates.
bandwidth/message_times.py has the times of good machines. `linkgauge expect --op` uses the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..bandwidth import collectives
from ..bandwidth.collective_algorithms import DIRECT, RING, SENT, SWITCHED
from ..bandwidth.message_size import full
from ..bandwidth.message_times import (
    FEWEST_SWITCHED,
    Pace,
    bounds,
    one_shot,
    pace_of,
    reduces_in_switches,
    seconds,
    share_of,
    tree,
)
from ..bandwidth.network_tiers import Level, below, exchanges, group
from .cluster import Cluster
from .cluster_fabric import bisection

AUTO, TREE, ONE_SHOT, NVLS, SHARP = "auto", "tree", "one-shot", "nvls", "sharp"
ALGORITHMS = (AUTO, "ring", TREE, NVLS, ONE_SHOT)
OPS = (RING, "all_gather", "reduce_scatter", DIRECT, "broadcast", SENT)
LONGEST = 16 << 30  # bytes: the size of the published bus bandwidths of machine types
_PASSES = {  # formula, S: bytes of the array, N: parts of the level, W: bytes per second of one part
    "ring": "2 S (N - 1) / (N W)",
    TREE: "2 S / W",
    NVLS: "S / W",
    SHARP: "S / W",
    ONE_SHOT: "S (N - 1) / W",
    "all_gather": "S (N - 1) / (N W)",
    "reduce_scatter": "S (N - 1) / (N W)",
    "broadcast": "S / W",
    SENT: "S / W",
}
_EXCHANGE = "S (N - 1) / (N² W)"
_EXCHANGES = "S w (T - w) / (T² W)"  # T: all GPUs, w: GPUs below one part


class ImpossibleCollective(ValueError):
    """A collective that these GPUs cannot run. Carries a sentence for the user."""


class Request(Struct, frozen=True):
    """A collective. `size` in bytes is counted as in nccl-tests: for alltoall the part of one GPU.

    `stride`: the array is also sharded over so many neighbours, and each of them is in another group. `active`: an
    alltoall sends each part to so many of the GPUs only.
    """

    op: str
    size: int
    ranks: int
    stride: int = 1
    algorithm: str = AUTO
    active: int | None = None


class Tier(Struct, frozen=True):
    """A level of the network, and the bound of the time at this level."""

    name: str
    parts: int
    rate: float  # of one part, bytes per second and one direction
    seconds: float
    usable: float  # bytes of the array per second at this level
    formula: str


class Timing(Struct, frozen=True):
    """Seconds, and bytes per second as nccl-tests define them."""

    seconds: float
    bus_bandwidth: float
    algorithm_bandwidth: float


class Collective(Struct, frozen=True):
    """The bound, and the slowest, usual and fastest good machines; None: nothing is published."""

    request: Request
    array: float  # bytes that one group of GPUs moves
    tiers: tuple[Tier, ...]
    bound: Timing
    low: Timing | None
    typical: Timing | None
    high: Timing | None
    level: str  # the level that limits
    latency: float | None  # seconds of a message of a few bytes
    bisection: float  # bytes per second from one half of these GPUs to the other, in one direction
    source: str


def collective_of(asked: Request, cluster: Cluster) -> Collective:
    """The times of a collective. ImpossibleCollective: the GPUs or the algorithm cannot run it."""
    levels = group(cluster.levels, asked.ranks, asked.stride)
    _check(asked, cluster, levels)
    array = collectives.array_of(asked.op, asked.size, asked.ranks) / asked.stride
    tiers = tuple(_tiers(asked, cluster, array, levels))
    slow = max(tiers, key=lambda one: one.seconds)
    found = Collective(
        request=asked,
        array=array,
        tiers=tiers,
        bound=_timing(asked, slow.seconds),
        low=None,
        typical=None,
        high=None,
        level=slow.name,
        latency=None,
        bisection=bisection(levels),
        source="no rates of reductions in network switches are published",
    )
    if asked.algorithm == SHARP and levels[-1].name != cluster.inside:
        return found
    return _with_paces(found, cluster, levels)


def curve(asked: Request, cluster: Cluster) -> tuple[Collective, ...]:
    """The collective at each power of two from 1 KiB to 16 GiB."""
    return tuple(collective_of(replace(asked, size=1 << power), cluster) for power in range(10, 35))


def _check(asked: Request, cluster: Cluster, levels: Sequence[Level]) -> None:
    if asked.ranks < 2 or asked.ranks * asked.stride > cluster.gpus:
        raise ImpossibleCollective(
            f"{asked.ranks * asked.stride} GPUs: a collective has from 2 to {cluster.gpus} GPUs here"
        )
    if asked.op != RING and asked.algorithm != AUTO:
        raise ImpossibleCollective(f"--algo and --sharp apply to all_reduce, not to {asked.op}: leave them out")
    if asked.active is not None and (asked.op != DIRECT or not 1 <= asked.active <= asked.ranks):
        raise ImpossibleCollective(f"--active {asked.active}: applies to alltoall, with 1 to {asked.ranks} of the GPUs")
    if asked.algorithm == ONE_SHOT and len(levels) > 1:
        raise ImpossibleCollective("--algo one-shot runs inside one node: leave out --nodes, or use --algo ring")
    near = levels[0].children if levels[0].name == cluster.inside else 1
    if asked.algorithm in (NVLS, SHARP) and near > 1 and not reduces_in_switches(RING, near, cluster.switched):
        why = (
            f"NCCL uses it from {FEWEST_SWITCHED} GPUs on" if cluster.switched else "its switches do not reduce arrays"
        )
        raise ImpossibleCollective(
            f"reductions in the switches of {cluster.name} with {near} GPUs: {why}; use --algo ring"
        )


def _tiers(asked: Request, cluster: Cluster, array: float, levels: Sequence[Level]) -> Iterator[Tier]:
    if asked.op == DIRECT:
        part = 1.0 if asked.active is None else min(asked.active / asked.ranks, 1.0)
        text = (_EXCHANGE if len(levels) == 1 else _EXCHANGES) + ("" if part == 1 else " min(k/T, 1)")
        for per_byte, one in exchanges(levels):
            yield Tier(one.name, one.children, one.rate, part * array * per_byte, 1 / (part * per_byte), text)
        return
    for one in levels:
        way = _way(asked, cluster, one)
        yield Tier(one.name, one.children, one.rate, _bound(way, array, one), 1 / _bound(way, 1.0, one), _PASSES[way])


def _way(asked: Request, cluster: Cluster, one: Level) -> str:
    """The row of _PASSES for a level."""
    if asked.op != RING:
        return asked.op
    inside = one.name == cluster.inside
    switched = asked.algorithm in (AUTO, NVLS) and inside and cluster.switched and one.children >= FEWEST_SWITCHED
    if switched or asked.algorithm == SHARP:
        return NVLS
    return asked.algorithm if asked.algorithm in (TREE, ONE_SHOT) else "ring"


def _bound(way: str, array: float, one: Level) -> float:
    ranks, rate = one.children, one.rate
    if way == "ring":
        return collectives.all_reduce(array, ranks, rate)
    if way == TREE:
        return collectives.all_reduce_tree(array, ranks, rate)
    if way == NVLS:
        return collectives.all_reduce_in_network(array, ranks, rate)
    if way == ONE_SHOT:
        return array * (ranks - 1) / rate
    if way in ("broadcast", SENT):
        return collectives.send_receive(array, rate)
    return collectives.all_gather(array, ranks, rate)


def _timing(asked: Request, seconds: float) -> Timing:
    size = asked.size / asked.stride
    bus = collectives.bus_bandwidth(asked.op, asked.ranks, size, seconds)
    return Timing(seconds, bus, size / seconds)


def _with_paces(found: Collective, cluster: Cluster, levels: Sequence[Level]) -> Collective:
    asked = found.request
    across = levels[-1].name != cluster.inside
    measured = cluster.measured.get((asked.op, across), ())
    paces = [replace(one, measured=measured) for one in _paces(asked, cluster, levels)]
    sent = 1.0  # GPUs that receive a part, as a share of those of a dense exchange
    if asked.active is not None:
        sent = collectives.distinct(asked.active, asked.ranks) * asked.ranks / (asked.ranks - 1)
    times = [seconds(one, sent * found.array) for one in paces]
    source = _source(asked, cluster, levels)
    if (rates := _of_machine(asked, cluster)) and not measured:
        longest = collectives.array_of(asked.op, max(asked.size, LONGEST), asked.ranks)
        shares = [share_of(one, found.array) / share_of(one, longest) for one in paces]
        times = [
            collectives.time_of(asked.op, asked.ranks, asked.size, rate * share)
            for rate, share in zip(rates, shares, strict=True)
        ]
        source = f"measured on machines of type {cluster.name}"
    low, typical, high = (_timing(asked, one) for one in (max(times[:2]), times[1], min(times[1:])))
    return replace(
        found, low=low, typical=typical, high=high, level=paces[1].held, latency=paces[1].latency or None, source=source
    )


def _paces(asked: Request, cluster: Cluster, levels: Sequence[Level]) -> Sequence[Pace]:
    """The slowest, usual and fastest good machines."""
    inside, switched = cluster.inside, cluster.switched
    if asked.algorithm == AUTO:
        return bounds(asked.op, levels, cluster.algorithms, inside, switched)
    times = {
        TREE: partial(tree, levels, inside=inside),
        ONE_SHOT: partial(one_shot, levels, inside=inside),
        "ring": partial(pace_of, RING, levels, inside=inside),
    }
    pace = times.get(asked.algorithm, partial(pace_of, RING, levels, inside=inside, switched=True))
    return [pace(algorithms=one) for one in cluster.algorithms.each()]


def _of_machine(asked: Request, cluster: Cluster) -> tuple[float, float, float] | None:
    """Bus bandwidths of long messages that were measured on this machine type with all GPUs of a node."""
    whole = asked.ranks == cluster.node_gpus and asked.stride == 1
    plain = asked.algorithm == AUTO and asked.active is None and asked.size >= full(asked.op)
    return cluster.bus_bandwidth.get(asked.op) if whole and plain else None


def _source(asked: Request, cluster: Cluster, levels: Sequence[Level]) -> str:
    """The measurements behind the share of the rated rate."""
    if levels[-1].name != cluster.inside:
        return cluster.algorithms.far[asked.op if asked.op in (DIRECT, SENT) else RING].source
    used = {ONE_SHOT: DIRECT, AUTO: asked.op}.get(asked.algorithm, RING)
    if asked.op == RING and _way(asked, cluster, levels[0]) == NVLS:
        used = SWITCHED
    return cluster.algorithms.near[used].source


def unit_gpus(cluster: Cluster) -> int:
    """The number of GPUs below the leaves of one unit. ImpossibleCollective: the switches are not known."""
    for one, count in zip(cluster.levels, below(cluster.levels)[1:], strict=True):
        if one.name == "leaf":
            return count
    raise ImpossibleCollective(
        "--within unit needs the switches, and more than one node: add --switches 64x400 --rails --nodes 32"
    )
