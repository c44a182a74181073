"""The rate of a long copy between each two GPUs, NICs, disks and NUMA nodes of a node, with no other traffic.

The results equal those of predict(). They are computed along the tree of routes from a source instead of route by
route. Of interchangeable leaf devices behind the same parent, only two are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import TypeAlias

from msgspec import Struct

from ..facts.records import Flow
from ..graph.flow_paths import unrated
from ..graph.routes import Route, follow, path_type, rated, tree
from ..graph.symmetry import End, Group, symmetric_groups
from ..graph.topology import Hop, Link, Topology
from .contention import able, enough_known, is_pcie, operation, towards
from .efficiency import attainable

ENDS = frozenset({"gpu", "nic", "nvme", "numa"})


class Pair(Struct, frozen=True):
    """A path and the rate of a copy over it in bytes per second. None: no rate or no share is known."""

    path_type: str  # "NVL", "PIX" ... (routes.py)
    rated: float | None
    typical: float | None
    bottleneck: Hop | None  # the hop that limits the typical copy


# For one hop: its rate; the typical rate of a copy; the typical rate of a copy that crosses sockets; whether each of
# these two is published; the kind of the hop.
_Figures: TypeAlias = tuple[float, float, float, tuple[bool, bool], str]
# The minima over all hops of a path: the rate; the typical rate of a copy and the first hop that limits it; the same
# two for a copy that crosses sockets.
_Least: TypeAlias = tuple[float, float, Hop | None, float, Hop | None]
_Kinds: TypeAlias = tuple[str, ...]
# For paths over the same kinds of hops: the path type, whether they cross sockets, whether any rate is known, and
# whether enough rates are known.
_Type: TypeAlias = tuple[str, bool, bool, bool]
_COPY, _ACROSS = Flow("copy", ("", "")), Hop("", "", (Link("", "", "", "interconnect"),))
_NOTHING: _Least = (float("inf"), float("inf"), None, float("inf"), None)


def pairs(topology: Topology) -> Mapping[str, Mapping[str, Pair]]:
    """By the ids of sender and receiver. Pairs without a path are left out."""
    groups, few = symmetric_groups(topology, ENDS)
    figures = _figures(few)
    rate, types = cache(rated), dict[_Kinds, _Type]()
    found: dict[str, Mapping[str, Pair]] = {}
    for senders in groups:
        paths = tree(few, senders[0].name, rate=rate)
        least, kinds = _along(few, paths, figures)
        first: list[tuple[Pair, End, Group]] = []
        for receivers in groups:
            end = receivers[receivers is senders and len(receivers) > 1]
            if paths.get(end.name):  # the end can be reached and is not the sender
                over = kinds[end.name]
                if over not in types:
                    types[over] = _type(few, follow(paths, end.name))
                whole = _with_memory(few, end.name, least[end.name], figures)
                first.append((_pair(whole, types[over], figures), end, receivers))
        found.update(_rows(senders, first))
    return found


def _figures(topology: Topology) -> Mapping[Hop, _Figures]:
    found: dict[Hop, _Figures] = {}
    for hop in (*chain.from_iterable(topology.hops.values()), *topology.memory.values()):
        alone, across = (operation(topology, _COPY, path, hop) for path in ((hop,), (hop, _ACROSS)))
        whole = able(hop)
        # As rate_without_sockets(hop), without a second call of able()
        limit = float("inf") if hop.links[0].kind == "interconnect" else whole
        near, known = _typical(hop, limit, alone)
        far, known_far = (near, known) if across == alone else _typical(hop, limit, across)
        rates = unrated((hop,)), whole == float("inf"), is_pcie(hop)
        over = f"{hop.links[0].kind}>{topology.by_name[hop.receiver].kind}{rates}"
        found[hop] = limit, near, far, (known, known_far), over
    return found


def _typical(hop: Hop, limit: float, op: str) -> tuple[float, bool]:
    """As Load.rates("typical") for this operation alone, and whether a share is published."""
    reach = attainable(hop.links[0].grade, op, towards(hop), rated=hop.links[0].rated)
    return limit * (reach.typical if reach else 1.0), reach is not None


def _along(
    topology: Topology, paths: Mapping[str, Hop | None], figures: Mapping[Hop, _Figures]
) -> tuple[Mapping[str, _Least], Mapping[str, _Kinds]]:
    """For the path to each device of a tree: the minima over its hops, and their kinds."""
    least: dict[str, _Least] = {}
    kinds: dict[str, _Kinds] = {}
    for name, hop in paths.items():
        if hop:
            of_hop = figures[hop]
            least[name] = _over(least[hop.sender], hop, of_hop)
            kinds[name] = (*kinds[hop.sender], of_hop[4])
        else:
            least[name] = _with_memory(topology, name, _NOTHING, figures)
            kinds[name] = (topology.by_name[name].kind,)
    return least, kinds


def _with_memory(topology: Topology, name: str, least: _Least, figures: Mapping[Hop, _Figures]) -> _Least:
    memory = topology.memory.get(name)
    return _over(least, memory, figures[memory]) if memory else least


def _over(least: _Least, hop: Hop, figures: _Figures) -> _Least:
    """The minima with one more hop."""
    whole, near, holds, far, holds_far = least
    if figures[1] < near:
        near, holds = figures[1], hop
    if figures[2] < far:
        far, holds_far = figures[2], hop
    return min(whole, figures[0]), near, holds, far, holds_far


def _type(topology: Topology, path: Route) -> _Type:
    crosses = any(hop.links[0].kind == "interconnect" for hop in path)
    return path_type(topology, path), crosses, not unrated(path), enough_known(((path,),), path[0])


def _pair(least: _Least, over: _Type, figures: Mapping[Hop, _Figures]) -> Pair:
    path, crosses, some, enough = over
    whole, near, holds, far, holds_far = least if some else _NOTHING
    typical, bottleneck = (far, holds_far) if crosses else (near, holds)
    most = None if whole == float("inf") else whole
    if not enough or bottleneck is None or not figures[bottleneck][3][crosses]:
        return Pair(path, most, None, None)
    return Pair(path, most, typical, bottleneck)


def _rows(senders: Group, first: Iterable[tuple[Pair, End, Group]]) -> Mapping[str, Mapping[str, Pair]]:
    """The pairs of all senders of a group. Input: the pairs of its first sender with one end of each receiver group."""
    alone: dict[str, Pair] = {}
    shared: dict[Pair, list[str]] = {}
    for pair, end, receivers in first:
        if len(receivers) > 1 and pair.bottleneck and pair.bottleneck.receiver in end.inner:
            place = end.back.index(pair.bottleneck)
            alone.update((one.name, _at(pair, one.back[place])) for one in receivers)
        else:
            shared.setdefault(pair, []).extend(one.name for one in receivers)
    rows = {sender.name: dict(alone) for sender in senders}
    for pair, names in shared.items():
        copies = [pair] * len(senders)
        if len(senders) > 1 and pair.bottleneck and pair.bottleneck.sender in senders[0].inner:
            place = senders[0].out.index(pair.bottleneck)
            copies = [_at(pair, sender.out[place]) for sender in senders]
        for row, copy in zip(rows.values(), copies, strict=True):
            row.update(dict.fromkeys(names, copy))
    for name, row in rows.items():
        row.pop(name, None)
    return rows


def _at(pair: Pair, bottleneck: Hop) -> Pair:
    return Pair(pair.path_type, pair.rated, pair.typical, bottleneck)
