"""The paths of a flow through a node, including the memories at its ends.

A flow consists of sub-flows. All of them must finish, so the slowest sets the rate. A sub-flow uses one or more
parallel paths, whose rates add up. A copy has one sub-flow with one path. A GPU reaches another node over all of its
nearest NICs. A striped array reads all its disks. In a collective, each rank is a sub-flow.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TypeAlias

from ..facts.records import COLLECTIVES, EGRESS, LOOPBACK, Flow
from .path_types import nearest
from .routes import RateOf, Route, rated, route, routes
from .topology import Hop, Link, Topology

SubFlow: TypeAlias = tuple[Route, ...]
_PEERS = ("nvlink", "xgmi")


def is_of_host(flow: Flow) -> bool:
    """Whether it is a copy between host memory and a device, and no other flow runs beside it."""
    of_host = [end.startswith(("host", "numa", "cpu")) for end in flow.ends]
    return flow.op == "copy" and len(of_host) == 2 and sum(of_host) == 1 and not flow.beside


def sub_flows(topology: Topology, flow: Flow, rate: RateOf = rated) -> tuple[SubFlow, ...]:
    """The sub-flows of a flow; empty if there is no path. `rate` gives the rate left on a hop, as in routes()."""
    if flow.op in COLLECTIVES:
        return _collective(topology, flow, rate)
    if flow.op == EGRESS:
        sub_flow = tuple(_egress_paths(topology, flow, rate))
        return (sub_flow,) if sub_flow else ()
    if len(flow.ends) == 1:
        memory = _memory(topology, flow.ends[0])
        return ((memory,),) if memory else ()
    if len(flow.ends) != 2:
        return ()
    if flow.op == LOOPBACK:
        path = _loopback(topology, *flow.ends, rate)
        return ((path,),) if path else ()
    paths = _over_net(topology, *flow.ends, rate) if flow.via == "net" else _stripes(topology, flow, rate)
    sub_flow = tuple(paths)
    return (sub_flow,) if sub_flow else ()


def hops_of(topology: Topology, flow: Flow) -> Route:
    """The hops on all paths of a flow; empty if it has no path."""
    return tuple(dict.fromkeys(hop for sub_flow in sub_flows(topology, flow) for path in sub_flow for hop in path))


def _stripes(topology: Topology, flow: Flow, rate: RateOf) -> Iterator[Route]:
    """One path per member of an array; one path otherwise."""
    source, target = _near_host(topology, *flow.ends)
    for start in _members(topology, source):
        for end in _members(topology, target):
            if flow.via == "host":
                path = _through_host(topology, start, end, rate)
            else:
                path = route(topology, start, end, flow.via, rate)
            if path:
                yield _with_memories(topology, start, path, end)


def _near_host(topology: Topology, source: str, target: str) -> tuple[str, str]:
    """The ends. "host" becomes the memory nearest to the other end, unless a device has that name."""
    if "host" not in (source, target) or topology.find("host"):
        return source, target
    if source == "host":
        return _near_host(topology, target, source)[::-1]
    away = routes(topology, source, "", rated)
    return source, next((name for name in away if topology.by_name[name].kind == "numa"), target)


def _members(topology: Topology, name: str) -> list[str]:
    device = topology.find(name)
    if device is None or device.kind != "array":
        return [name]
    return [link.a for link in topology.links if link.kind == "member" and link.b == device.id] or [name]


def _through_host(topology: Topology, source: str, target: str, rate: RateOf) -> Route | None:
    """Into the memory of the NUMA node nearest to the sender, and out of it again."""
    away = routes(topology, source, "", rate)
    numas = [name for name in away if topology.by_name[name].kind == "numa"]
    near = min(numas, key=lambda name: len(away[name]), default=None)
    onward = route(topology, near, target, "", rate) if near else None
    if near is None or onward is None:
        return None
    return (*away[near], *_memory(topology, near), *_memory(topology, near), *onward)


def _over_net(topology: Topology, source: str, target: str, rate: RateOf) -> Iterator[Route]:
    """One path per NIC of the sender, to the receiver's NIC with the same index."""
    for mine, other in zip(nearest_ports(topology, source), nearest_ports(topology, target), strict=False):
        out, back = route(topology, source, mine, "", rate), route(topology, other, target, "", rate)
        if out and back:
            wire = Hop(mine, other, (Link(f"{mine}>{other}", mine, other, "net"),))
            yield _with_memories(topology, source, (*out, wire, *back), target)


def _loopback(topology: Topology, source: str, nic: str, rate: RateOf) -> Route | None:
    """To the NIC, through it, and back over the same hops. The port limits the rate; the cable's link is not used."""
    source, nic = _near_host(topology, source, nic)
    device, path = topology.find(nic), route(topology, source, nic, "", rate)
    if device is None or not path:
        return None
    ports = [link for link in topology.links if link.a == device.id and link.kind == "port"]
    rates = [min(known) for link in ports if (known := [one for one in (link.rated, link.trained) if one])]
    grade = ports[0].grade if ports else ""
    through = Link(f"{device.id}>itself", device.id, device.id, "loopback", max(rates, default=None), grade=grade)
    return _with_memories(topology, source, (*path, Hop(device.id, device.id, (through,))), nic)


def nearest_ports(topology: Topology, name: str, lost: Container[str] = ()) -> list[str]:
    """The ports of the NICs nearest to a device, in the order of their names, without those in `lost`.

    For a port: the port itself.
    """
    device = topology.find(name)
    if device is None or device.kind == "port":
        return [device.id] if device else []
    ports: dict[str, list[str]] = {}
    for link in topology.links:
        if link.kind == "port":
            ports.setdefault(link.a, []).extend([link.b] if link.b not in lost else [])
    dead = {nic for nic, several in ports.items() if not several}
    return [port for nic, _ in nearest(topology, device.id, dead) for port in ports.get(nic.device.id, [])]


def _egress_paths(topology: Topology, flow: Flow, rate: RateOf) -> Iterator[Route]:
    """From each end to each of its nearest ports. A port that is nearest to several ends is shared."""
    for end in flow.ends:
        for port in nearest_ports(topology, end):
            if path := route(topology, end, port, "", rate):
                yield _with_memories(topology, end, path, port)


def _collective(topology: Topology, flow: Flow, rate: RateOf) -> tuple[SubFlow, ...]:
    """Over NVLink or xGMI each rank uses all its links to the others (NCCL builds as many rings); else one ring."""
    ranks = [device.id for end in flow.ends if (device := topology.find(end))]
    if len(ranks) < 2 or len(ranks) < len(flow.ends):
        return ()
    found = [_peers_of(topology, rank, ranks, flow.via, rate) for rank in ranks]
    if all(found):
        return tuple(found)
    ring = [route(topology, a, b, flow.via, rate) for a, b in zip(ranks, ranks[1:] + ranks[:1], strict=True)]
    return tuple((path,) for path in ring if path) if all(ring) else ()


def _peers_of(topology: Topology, rank: str, ranks: list[str], via: str, rate: RateOf) -> SubFlow:
    """The hops from a rank to the others; empty if one of them has no direct link to it."""
    near = routes(topology, rank, via, rate)
    paths = [near.get(other) for other in ranks if other != rank]
    if not all(path and path[0].links[0].kind in _PEERS for path in paths):
        return ()
    return tuple((hop,) for hop in dict.fromkeys(path[0] for path in paths if path))


def _with_memories(topology: Topology, start: str, path: Route, end: str) -> Route:
    """The path with the memories at its ends. If no rate on the path is known, a memory would appear as bottleneck."""
    return path if unrated(path) else (*_memory(topology, start), *path, *_memory(topology, end))


def unrated(path: Route) -> bool:
    """Whether no rate is known for any link on the path."""
    return all(link.rated is None and link.trained is None for hop in path for link in hop.links)


def _memory(topology: Topology, name: str) -> Route:
    device = topology.find(name)
    hop = topology.memory.get(device.id) if device else None
    return (hop,) if hop else ()
