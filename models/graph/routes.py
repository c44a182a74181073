"""Which way bytes go, and what nvidia-smi and NCCL call such a way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
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
        whole = base(hop)
        if not any(link.id in limits for link in hop.links):
            return whole
        alone = ((link, base(Hop(hop.sender, hop.receiver, (link,)))) for link in hop.links)
        return min(whole, sum(min(limits.get(link.id, own), own) for link, own in alone))

    return rate


_LASTING = (rated, active)  # by these rates ways are asked for again and again
_MOST = 256  # searches that a topology remembers; of a node of 1,000 PCI functions each takes up to 45 kB


@dataclass(slots=True)
class _Search:
    """A breadth-first search that goes on where it stopped when more is asked of it."""

    found: dict[str, Hop | None]  # the last hop of the way to each device; None: it begins here
    order: list[str]  # the devices as they were found
    looked: int = 0  # beyond so many of them

    def go_on(self, topology: Topology, via: str, rate: RateOf) -> bool:
        """Beyond one more device; whether there was one."""
        if self.looked == len(self.order):
            return False
        here, found = self.order[self.looked], self.found
        self.looked += 1
        last, kind = found[here], topology.by_name[here].kind
        if kind == "array" and last:
            return True  # it leads to its members, and never from one of them to another
        free = last is None or kind in FORWARDS or last.links[0].kind in INSIDE
        for hop in topology.hops.get(here, ()):
            passes = hop.receiver not in found and (free or hop.links[0].kind in INSIDE)
            if passes and (not via or _allowed(hop, via)) and rate(hop) > 0:
                found[hop.receiver] = hop
                self.order.append(hop.receiver)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Routes(Mapping[str, Route]):
    """The ways of a search, which goes on as far as is asked."""

    search: _Search
    topology: Topology
    via: str
    rate: RateOf

    def _go_on(self) -> bool:
        return self.search.go_on(self.topology, self.via, self.rate)

    def __getitem__(self, name: str) -> Route:
        while name not in self.search.found and self._go_on():
            pass
        return follow(self.search.found, name)

    def __iter__(self) -> Iterator[str]:
        for number, name in enumerate(self.search.order, 1):  # which grows
            yield name
            while number == len(self.search.order) and self._go_on():
                pass

    def __len__(self) -> int:
        while self._go_on():
            pass
        return len(self.search.order)


def routes(topology: Topology, source: str, via: str = "", rate: RateOf = rated) -> Mapping[str, Route]:
    """From `source` (id or alias) the way of fewest hops to every device that can be reached, by id.

    Never the widest way: that one would go around the very link that is at fault. Of a hop that has nothing left by
    `rate` there is no way: a GPU without any NVLink copies over PCIe. Only what forwards lets other traffic through.
    `via` names the medium that must be taken ("nvlink", "pcie"); ways inside chips and devices are free.

    Devices come nearest first, and no further than is asked: the first of a kind costs no more than finding it.
    """
    return _Routes(_search(topology, source, via, rate), topology, via, rate)


def route(topology: Topology, source: str, target: str, via: str = "", rate: RateOf = rated) -> Route | None:
    """The way of fewest hops between two devices (ids or aliases); None where there is none."""
    end = topology.find(target)
    return routes(topology, source, via, rate).get(end.id) if end else None


def tree(topology: Topology, source: str, via: str = "", rate: RateOf = rated) -> Mapping[str, Hop | None]:
    """What routes() gives as the last hop of each way, of which `follow` makes a route; None for the source itself."""
    search = _search(topology, source, via, rate)
    while search.go_on(topology, via, rate):
        pass
    return search.found


def follow(tree: Mapping[str, Hop | None], name: str) -> Route:
    """The way to a device of a tree. KeyError for any other."""
    way: list[Hop] = []
    hop = tree[name]
    while hop:
        way.append(hop)
        hop = tree[hop.sender]
    return tuple(reversed(way))


def _search(topology: Topology, source: str, via: str, rate: RateOf) -> _Search:
    """The one that was begun, else a new one; from a device that is not there it finds nothing."""
    begin = [device.id] if (device := topology.find(source)) else []
    begun: dict[Hashable, _Search] = topology.searches
    key = (*begin, via, rate)
    if key in begun:
        return begun[key]
    search = _Search(dict.fromkeys(begin), begin)
    if rate in _LASTING:
        if len(begun) >= _MOST:
            del begun[next(iter(begun))]
        begun[key] = search
    return search


def _allowed(hop: Hop, via: str) -> bool:
    kind = hop.links[0].kind
    if via == "pcie":
        return kind not in ("nvlink", "xgmi", "c2c")
    return kind == via or kind in INSIDE


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
