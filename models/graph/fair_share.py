"""Max-min fair shares of flows that run at the same time over common hops."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..facts.records import Flow
from ..facts.units import BytesPerSecond
from .flow_paths import SubFlow, sub_flows
from .routes import RateOf, Route
from .topology import Hop, Topology


class Share(Struct, frozen=True):
    """The rate of a flow and the hop that limits it. With several parallel paths, the hop of the first path."""

    rate: BytesPerSecond
    bottleneck: Hop


def shares(topology: Topology, flows: Iterable[Flow], rate: RateOf) -> Mapping[Flow, BytesPerSecond]:
    """The rate of each flow, from `fill`. Flows without a path or without a limit are left out."""
    routed = {flow: sub_flows(topology, flow, rate) for flow in flows}
    return {flow: share.rate for flow, share in fill(routed, rate).items()}


def fill(routed: Mapping[Flow, tuple[SubFlow, ...]], rate: RateOf) -> Mapping[Flow, Share]:
    """Max-min fair shares of the paths of all flows. The two directions of a hop are independent.

    The rates of all paths rise equally until a hop is full. Paths over that hop keep their rate; the others rise
    further (water filling, Bertsekas and Gallager, Data Networks, 6.5.2). The paths of one sub-flow add up. The slowest
    sub-flow sets the rate of a flow.
    """
    paths = {
        (flow, n, m): path
        for flow, several in routed.items()
        for n, sub_flow in enumerate(several)
        for m, path in enumerate(sub_flow)
    }
    path_share = _path_shares(paths, rate)
    found: dict[Flow, Share] = {}
    for flow, several in routed.items():
        sub_flows_of = [
            [path_share.get((flow, n, m)) for m in range(len(sub_flow))] for n, sub_flow in enumerate(several)
        ]
        limited = [[share for share in sub_flow if share] for sub_flow in sub_flows_of if sub_flow and all(sub_flow)]
        if limited:
            sums = [
                Share(BytesPerSecond(sum(one.rate for one in sub_flow)), sub_flow[0].bottleneck) for sub_flow in limited
            ]
            found[flow] = min(sums, key=lambda share: share.rate)
    return found


def _path_shares(paths: Mapping[tuple[Flow, int, int], Route], rate: RateOf) -> Mapping[tuple[Flow, int, int], Share]:
    """The share of each path that has a limit. A path may cross a hop twice (memory that is written and read)."""
    left = {hop: rate(hop) for path in paths.values() for hop in path}
    users = defaultdict[Hop, list[tuple[Flow, int, int]]](list)
    load = Counter[Hop]()
    for key, path in paths.items():
        for hop in path:
            if left[hop] != float("inf"):
                load[hop] += 1
                users[hop].append(key)
    path_share: dict[tuple[Flow, int, int], Share] = {}
    while load:
        bottleneck = min(load, key=lambda hop: left[hop] / load[hop])
        share = Share(BytesPerSecond(left[bottleneck] / load[bottleneck]), bottleneck)
        for key in dict.fromkeys(users[bottleneck]):
            if key in path_share:
                continue
            path_share[key] = share
            for hop in paths[key]:
                if hop in load:
                    left[hop] = max(0.0, left[hop] - share.rate)
                    load[hop] -= 1
        load = +load
    return path_share
