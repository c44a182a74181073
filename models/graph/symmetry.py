"""Ends of a topology that hang alike on one device: the disks below a switch, which differ in names alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from .topology import Hop, Topology

_Graph: TypeAlias = Mapping[str, Mapping[str, Hop]]  # hops by sender and receiver
_SWITCHES = frozenset({"fabric", "nvswitch"})  # a link to one switch is a link to all, as long as both are there


@dataclass(frozen=True, slots=True)
class End:
    """A device, and the hops that only its own bytes take: from its memory to where others join, and back."""

    name: str
    out: tuple[Hop, ...]
    back: tuple[Hop, ...]
    inner: frozenset[str]  # the device, and those between it and where others join


Group: TypeAlias = tuple[End, ...]


def alike(topology: Topology, kinds: Collection[str]) -> tuple[tuple[Group, ...], Topology]:
    """The devices of these kinds, in one group those that hang on one device over equal links; and the topology
    without what lies between no two of them, and without all but the first two of each group.

    What holds of the ways between those first two and to others, holds of the whole group.
    """
    graph = _between(topology, kinds)
    ends = {device.id for device in topology.devices if device.kind in kinds}
    found = defaultdict[Hashable, list[End]](list)
    for name in sorted(ends):
        end = _end(topology, graph, name, ends)
        joint = end.out[-1].receiver if end.out else name
        looks = tuple(_looks(topology, hop) for hop in end.out)
        found[joint, joint == name, topology.by_name[name].kind, looks].append(end)
    groups = tuple(tuple(group) for group in found.values())
    further = {name for group in groups for end in group[2:] for name in end.inner}
    return groups, _without(topology, further | (topology.hops.keys() - graph.keys()))


def _between(topology: Topology, kinds: Collection[str]) -> _Graph:
    """The hops without those to devices of other kinds that lead no further."""
    graph = {name: {hop.receiver: hop for hop in leaving} for name, leaving in topology.hops.items()}
    stay = {device.id for device in topology.devices if device.kind in kinds or device.kind in _SWITCHES}
    leaves = [name for name, leaving in graph.items() if len(leaving) == 1 and name not in stay]
    for name in leaves:  # which grow
        for other in graph.pop(name):
            del graph[other][name]
            if len(graph[other]) == 1 and other not in stay:
                leaves.append(other)
    return graph


def _end(topology: Topology, graph: _Graph, name: str, ends: Collection[str]) -> End:
    """With a single neighbour, the hops as far as a device that has others besides or is an end itself."""
    memory = [topology.memory[name]] if name in topology.memory else []
    way: list[Hop] = []
    onward = list(graph.get(name, {}).values())
    while len(onward) == 1:
        way += onward
        here = way[-1].receiver
        onward = [hop for hop in graph[here].values() if hop.receiver != way[-1].sender] if here not in ends else []
    back = [graph[hop.receiver][hop.sender] for hop in reversed(way)]
    return End(name, (*memory, *way), (*back, *memory), frozenset(hop.sender for hop in way))


def _looks(topology: Topology, hop: Hop) -> Hashable:
    """All of a hop but names."""
    links = ((n.kind, n.rated, n.trained, n.rated_back, n.grade, n.a == hop.sender) for n in hop.links)
    return topology.by_name[hop.receiver].kind, *links


def _without(topology: Topology, names: Collection[str]) -> Topology:
    devices = tuple(device for device in topology.devices if device.id not in names)
    return Topology(devices, tuple(one for one in topology.links if one.a not in names and one.b not in names))
