"""Which way bytes go, and what nvidia-smi and NCCL call such a way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

from .topology import FORWARDS, INSIDE, Hop, Link, Topology

Route: TypeAlias = tuple[Hop, ...]
RateOf: TypeAlias = Callable[[Hop], float]

# From near to far, as `nvidia-smi topo -m` and NCCL (src/include/graph.h) name them.
PATH_TYPES = ("LOC", "NVL", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS", "NET")


def rated(hop: Hop) -> float:
    """Bytes per second that the hop can carry; infinite where nothing limits it that we know of."""
    return sum(_of(link, hop) for link in hop.links)


def active(hop: Hop) -> float:
    """As `rated`, of the links that are not down (trained at 0)."""
    return sum(_of(link, hop) for link in hop.links if link.trained != 0)


def limited(limits: Mapping[str, float], base: RateOf = rated) -> RateOf:
    """The rates of `base`, with some links (by id) reduced to what a fault leaves of them."""

    def rate(hop: Hop) -> float:
        alone = ((link, base(Hop(hop.sender, hop.receiver, (link,)))) for link in hop.links)
        return min(base(hop), sum(min(limits.get(link.id, own), own) for link, own in alone))

    return rate


def routes(topology: Topology, source: str, via: str = "", rate: RateOf = rated) -> Mapping[str, Route]:
    """From `source` (id or alias) the way of fewest hops to every device that can be reached, by id.

    Never the widest way: that one would go around the very link that is at fault. Of a hop that has nothing left by
    `rate` there is no way: a GPU without any NVLink copies over PCIe. `via` names the medium that must be taken
    ("nvlink", "pcie"); ways inside chips and devices are free.
    """
    start = topology.find(source)
    if start is None:
        return {}
    found: dict[str, Route] = {start.id: ()}
    queue = deque([start.id])
    while queue:
        here = queue.popleft()
        for hop in topology.hops.get(here, ()):
            new = hop.receiver not in found and _passes(topology, found[here], hop) and _allowed(hop, via)
            if new and rate(hop) > 0:
                found[hop.receiver] = (*found[here], hop)
                queue.append(hop.receiver)
    return found


def route(topology: Topology, source: str, target: str, via: str = "", rate: RateOf = rated) -> Route | None:
    """The way of fewest hops between two devices (ids or aliases); None where there is none."""
    end = topology.find(target)
    return routes(topology, source, via, rate).get(end.id) if end else None


def _passes(topology: Topology, so_far: Route, hop: Hop) -> bool:
    """Whether traffic that came this way may leave over the hop: only what forwards lets it through."""
    if not so_far or topology.by_name[hop.sender].kind in FORWARDS:
        return True
    return so_far[-1].links[0].kind in INSIDE or hop.links[0].kind in INSIDE


def _allowed(hop: Hop, via: str) -> bool:
    kind = hop.links[0].kind
    if via == "pcie":
        return kind not in ("nvlink", "xgmi", "c2c")
    return not via or kind == via or kind in INSIDE


def path_type(topology: Topology, way: Route) -> str:
    """LOC NVL C2C PIX PXB PHB NODE SYS or NET, by the farthest thing that the way goes over."""
    kinds = {hop.links[0].kind for hop in way}
    if not kinds - INSIDE:
        return "LOC"
    if "net" in kinds:
        return "NET"
    passed = [topology.by_name[name].kind for name in (way[0].sender, *(hop.receiver for hop in way))]
    if passed.count("numa") > 1:
        return "SYS"
    if "host-bridge" in passed:
        return "NODE" if passed.count("host-bridge") > 1 else "PHB"
    if kinds & {"nvlink", "xgmi", "c2c"}:
        return "C2C" if "numa" in passed else "NVL"  # to a processor, and between GPUs
    return "PIX" if passed.count("upstream-port") <= 1 else "PXB"


def _of(link: Link, hop: Hop) -> float:
    rate = link.rated if link.a == hop.sender or link.rated_back is None else link.rated_back
    return float("inf") if rate is None else rate
