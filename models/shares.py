"""Flows that run at the same time share the hops that they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from .routes import RateOf, route
from .said import Flow
from .topology import Topology
from .units import BytesPerSecond


def shares(topology: Topology, flows: Iterable[Flow], rate: RateOf) -> Mapping[Flow, BytesPerSecond]:
    """What each flow gets: max-min fair, the two directions of a hop apart.

    All flows are raised alike until a hop is full; its flows stay there and the others go on (water filling,
    Bertsekas and Gallager, Data Networks, 6.5.2). Flows without a route, or whose route nothing limits, are left out.
    """
    ways = {flow: route(topology, flow.ends[0], flow.ends[-1], flow.via, rate) or () for flow in flows}
    left = {hop: rate(hop) for way in ways.values() for hop in way}
    got: dict[Flow, BytesPerSecond] = {}
    while rising := [flow for flow in ways if flow not in got]:
        load = Counter(hop for flow in rising for hop in ways[flow] if left[hop] != float("inf"))
        if not load:
            break
        full = min(load, key=lambda hop: left[hop] / load[hop])
        share = left[full] / load[full]
        for flow in rising:
            if full in ways[flow]:
                got[flow] = BytesPerSecond(share)
                for hop in ways[flow]:
                    left[hop] = max(0.0, left[hop] - share)
    return got
