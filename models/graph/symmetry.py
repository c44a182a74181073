"""Interchangeable leaf devices behind the same parent, such as the disks below one switch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from typing import TypeAlias

from msgspec import Struct

from .topology import Hop, Topology

_Graph: TypeAlias = Mapping[str, Mapping[str, Hop]]  # hops by sender and receiver
# A link to one switch stands for links to all, while both are in the topology
_SWITCHES = frozenset({"fabric", "nvswitch"})


class End(Struct, frozen=True):
    """A device and the hops that only its own traffic uses: from its memory to the first shared device, and back."""

    name: str
    out: tuple[Hop, ...]
    back: tuple[Hop, ...]
    inner: frozenset[str]  # the device, and the devices between it and the joint


Group: TypeAlias = tuple[End, ...]


def symmetric_groups(topology: Topology, kinds: Collection[str]) -> tuple[tuple[Group, ...], Topology]:
    """Groups of interchangeable devices of these kinds, and a smaller topology for path searches.

    A group holds the devices that equal links connect to the same parent. The topology keeps the first two devices of
    each group and the links between them. Results for these two devices hold for the whole group.
    """
    graph = _between(topology, kinds)
    ends = {device.id for device in topology.devices if device.kind in kinds}
    found = defaultdict[Hashable, list[End]](list)
    for name in sorted(ends):
        end = _end(topology, graph, name, ends)
        joint = end.out[-1].receiver if end.out else name
        signature = tuple(_signature(topology, hop) for hop in end.out)
        found[joint, joint == name, topology.by_name[name].kind, signature].append(end)
    groups = tuple(tuple(group) for group in found.values())
    further = {name for group in groups for end in group[2:] for name in end.inner}
    return groups, _without(topology, further | (topology.hops.keys() - graph.keys()))


def _between(topology: Topology, kinds: Collection[str]) -> _Graph:
    """The hops, without branches that contain no device of these kinds."""
    graph = {name: {hop.receiver: hop for hop in leaving} for name, leaving in topology.hops.items()}
    stay = {device.id for device in topology.devices if device.kind in kinds or device.kind in _SWITCHES}
    leaves = [name for name, leaving in graph.items() if len(leaving) == 1 and name not in stay]
    for name in leaves:  # the list grows during the loop
        for other in graph.pop(name):
            del graph[other][name]
            if len(graph[other]) == 1 and other not in stay:
                leaves.append(other)
    return graph


def _end(topology: Topology, graph: _Graph, name: str, ends: Collection[str]) -> End:
    """The hops of an end up to its joint, which is the first device with further neighbours, or another end."""
    memory = [topology.memory[name]] if name in topology.memory else []
    path: list[Hop] = []
    onward = list(graph.get(name, {}).values())
    while len(onward) == 1:
        path += onward
        here = path[-1].receiver
        onward = [hop for hop in graph[here].values() if hop.receiver != path[-1].sender] if here not in ends else []
    back = [graph[hop.receiver][hop.sender] for hop in reversed(path)]
    return End(name, (*memory, *path), (*back, *memory), frozenset(hop.sender for hop in path))


def _signature(topology: Topology, hop: Hop) -> Hashable:
    """All properties of a hop except its names."""
    links = ((n.kind, n.rated, n.trained, n.rated_back, n.grade, n.a == hop.sender) for n in hop.links)
    return topology.by_name[hop.receiver].kind, *links


def _without(topology: Topology, names: Collection[str]) -> Topology:
    devices = tuple(device for device in topology.devices if device.id not in names)
    return Topology(devices, tuple(one for one in topology.links if one.a not in names and one.b not in names))
