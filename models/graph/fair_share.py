"""Max-min fair shares of flows that run at the same time over common hops."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..facts.records import Flow
from ..facts.units import BytesPerSecond
from .flow_paths import SubFlow, sub_flows
from .routes import RateOf, Route
from .topology import Hop, Topology


@dataclass(frozen=True, slots=True)
class Share:
    """The rate of a flow and the hop that limits it. With several parallel paths, the hop of the first path."""

    rate: BytesPerSecond
    full: Hop


def shares(topology: Topology, flows: Iterable[Flow], rate: RateOf) -> Mapping[Flow, BytesPerSecond]:
    """The rate of each flow, from `fill`. Flows without a path or without a limit are left out."""
    taken = {flow: sub_flows(topology, flow, rate) for flow in flows}
    return {flow: share.rate for flow, share in fill(taken, rate).items()}


def fill(taken: Mapping[Flow, tuple[SubFlow, ...]], rate: RateOf) -> Mapping[Flow, Share]:
    """Max-min fair shares of the paths of all flows. The two directions of a hop are independent.

    The rates of all paths rise equally until a hop is full. Paths over that hop keep their rate; the others rise
    further (water filling, Bertsekas and Gallager, Data Networks, 6.5.2). The paths of one sub-flow add up. The slowest
    sub-flow sets the rate of a flow.
    """
    ways = {
        (flow, n, m): way
        for flow, several in taken.items()
        for n, sub_flow in enumerate(several)
        for m, way in enumerate(sub_flow)
    }
    got = _raise(ways, rate)
    found: dict[Flow, Share] = {}
    for flow, several in taken.items():
        sub_flows_of = [[got.get((flow, n, m)) for m in range(len(sub_flow))] for n, sub_flow in enumerate(several)]
        limited = [[share for share in sub_flow if share] for sub_flow in sub_flows_of if sub_flow and all(sub_flow)]
        if limited:
            sums = [Share(BytesPerSecond(sum(one.rate for one in sub_flow)), sub_flow[0].full) for sub_flow in limited]
            found[flow] = min(sums, key=lambda share: share.rate)
    return found


def _raise(ways: Mapping[tuple[Flow, int, int], Route], rate: RateOf) -> Mapping[tuple[Flow, int, int], Share]:
    """The share of each path that has a limit. A path may cross a hop twice (memory that is written and read)."""
    left = {hop: rate(hop) for way in ways.values() for hop in way}
    over = defaultdict[Hop, list[tuple[Flow, int, int]]](list)
    load = Counter[Hop]()
    for key, way in ways.items():
        for hop in way:
            if left[hop] != float("inf"):
                load[hop] += 1
                over[hop].append(key)
    got: dict[tuple[Flow, int, int], Share] = {}
    while load:
        full = min(load, key=lambda hop: left[hop] / load[hop])
        share = Share(BytesPerSecond(left[full] / load[full]), full)
        for key in dict.fromkeys(over[full]):
            if key in got:
                continue
            got[key] = share
            for hop in ways[key]:
                if hop in load:
                    left[hop] = max(0.0, left[hop] - share.rate)
                    load[hop] -= 1
        load = +load
    return got
