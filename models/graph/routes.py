"""Routes through the topology, and their path types in the words of nvidia-smi and NCCL."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from .topology import FORWARDS, INSIDE, Hop, Link, Topology

Route: TypeAlias = tuple[Hop, ...]
RateOf: TypeAlias = Callable[[Hop], float]

# From near to far, with the names of `nvidia-smi topo -m` and NCCL (src/include/graph.h).
PATH_TYPES = ("LOC", "NVL", "C2C", "PIX", "PXB", "PHB", "NODE", "SYS", "NET")


def rated(hop: Hop) -> float:
    """Bytes per second of the hop; infinite if no limit is known."""
    return sum(_of(link, hop) for link in hop.links)


def active(hop: Hop) -> float:
    """As `rated`, without the links that are down (trained at 0)."""
    return sum(_of(link, hop) for link in hop.links if link.trained != 0)


def limited(limits: Mapping[str, float], base: RateOf = rated) -> RateOf:
    """The rates of `base`, with some links (by id) reduced to the rate that a fault leaves."""

    def rate(hop: Hop) -> float:
        whole = base(hop)
        if not any(link.id in limits for link in hop.links):
            return whole
        alone = ((link, base(Hop(hop.sender, hop.receiver, (link,)))) for link in hop.links)
        return min(whole, sum(min(limits.get(link.id, own), own) for link, own in alone))

    return rate


_CACHED_RATES = (rated, active)  # searches with these rates are frequent, so they are cached
_MOST_SEARCHES = 256  # cached searches per topology; with 1,000 PCI functions one takes up to 45 kB


class _Search(Struct):
    """A breadth-first search that runs only as far as its results are read."""

    found: dict[str, Hop | None]  # the last hop of the route to each device; None: the source
    order: list[str]  # the devices in the order of discovery
    expanded: int = 0  # number of devices that are already expanded

    def expand(self, topology: Topology, via: str, rate: RateOf) -> bool:
        """Expand one more device. False: all are expanded."""
        if self.expanded == len(self.order):
            return False
        here, found = self.order[self.expanded], self.found
        self.expanded += 1
        last, kind = found[here], topology.by_name[here].kind
        if kind == "array" and last:
            return True  # an array leads to its members, but no member leads to another through it
        free = last is None or kind in FORWARDS or last.links[0].kind in INSIDE
        for hop in topology.hops.get(here, ()):
            passes = hop.receiver not in found and (free or hop.links[0].kind in INSIDE)
            if passes and (not via or _allowed(hop, via)) and rate(hop) > 0:
                found[hop.receiver] = hop
                self.order.append(hop.receiver)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Routes(Mapping[str, Route]):
    """The routes of a search. Reading further entries continues the search."""

    search: _Search
    topology: Topology
    via: str
    rate: RateOf

    def _expand(self) -> bool:
        return self.search.expand(self.topology, self.via, self.rate)

    def __getitem__(self, name: str) -> Route:
        while name not in self.search.found and self._expand():
            pass
        return follow(self.search.found, name)

    def __iter__(self) -> Iterator[str]:
        for number, name in enumerate(self.search.order, 1):  # the list grows during the loop
            yield name
            while number == len(self.search.order) and self._expand():
                pass

    def __len__(self) -> int:
        while self._expand():
            pass
        return len(self.search.order)


def routes(topology: Topology, source: str, via: str = "", rate: RateOf = rated) -> Mapping[str, Route]:
    """The route with the fewest hops from `source` (id or alias) to every device that can be reached, by id.

    The widest route is not used: it would go around a faulty link. A hop without any rate left in `rate` is not used: a
    GPU without NVLinks copies over PCIe. Only devices in FORWARDS pass on traffic of others. `via` names the required
    medium ("nvlink", "pcie"); links inside chips and devices are always allowed.

    The nearest devices come first, and the search stops where the caller stops reading.
    """
    return _Routes(_search(topology, source, via, rate), topology, via, rate)


def route(topology: Topology, source: str, target: str, via: str = "", rate: RateOf = rated) -> Route | None:
    """The route with the fewest hops between two devices (ids or aliases); None: no route."""
    end = topology.find(target)
    return routes(topology, source, via, rate).get(end.id) if end else None


def tree(topology: Topology, source: str, via: str = "", rate: RateOf = rated) -> Mapping[str, Hop | None]:
    """The last hop of each route of routes(); None for the source. `follow` returns the full route."""
    search = _search(topology, source, via, rate)
    while search.expand(topology, via, rate):
        pass
    return search.found


def follow(tree: Mapping[str, Hop | None], name: str) -> Route:
    """The route to a device of a tree. KeyError: the tree does not reach the device."""
    path: list[Hop] = []
    hop = tree[name]
    while hop:
        path.append(hop)
        hop = tree[hop.sender]
    return tuple(reversed(path))


def _search(topology: Topology, source: str, via: str, rate: RateOf) -> _Search:
    """The cached search, else a new one. From an unknown device it finds nothing."""
    start = [device.id] if (device := topology.find(source)) else []
    cached: dict[Hashable, _Search] = topology.searches
    key = (*start, via, rate)
    if key in cached:
        return cached[key]
    search = _Search(dict.fromkeys(start), start)
    if rate in _CACHED_RATES:
        if len(cached) >= _MOST_SEARCHES:
            del cached[next(iter(cached))]
        cached[key] = search
    return search


def _allowed(hop: Hop, via: str) -> bool:
    kind = hop.links[0].kind
    if via == "pcie":
        return kind not in ("nvlink", "xgmi", "c2c")
    return kind == via or kind in INSIDE


def path_type(topology: Topology, path: Route) -> str:
    """LOC NVL C2C PIX PXB PHB NODE SYS or NET, by the farthest device on the route."""
    kinds = {hop.links[0].kind for hop in path}
    if not kinds - INSIDE:
        return "LOC"
    if "net" in kinds:
        return "NET"
    passed = [topology.by_name[name].kind for name in (path[0].sender, *(hop.receiver for hop in path))]
    if passed.count("numa") > 1:
        return "SYS"
    if "host-bridge" in passed:
        return "NODE" if passed.count("host-bridge") > 1 else "PHB"
    if kinds & {"nvlink", "xgmi", "c2c"}:
        return "C2C" if "numa" in passed else "NVL"  # C2C: GPU to processor. NVL: GPU to GPU.
    return "PIX" if passed.count("upstream-port") <= 1 else "PXB"


def _of(link: Link, hop: Hop) -> float:
    rate = link.rated if link.a == hop.sender or link.rated_back is None else link.rated_back
    return float("inf") if rate is None else rate
