"""Chipsets that fall far below the fair share when several GPUs write to several others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from ..catalog.chipsets import Limit, limits
from ..facts.records import Flow
from ..graph.flow_paths import SubFlow
from ..graph.routes import Route
from ..graph.topology import Hop, Topology


def crowded(topology: Topology, taken: Mapping[Flow, tuple[SubFlow, ...]]) -> Mapping[Hop, Limit]:
    """The uplinks of switches that a known chipset limit holds under these flows. Switch names are those of pci.ids."""
    over = defaultdict[Hop, list[tuple[str, str]]](list)
    for uplink, sender, root in _writes(topology, taken):
        over[uplink].append((sender, root))
    found: dict[Hop, Limit] = {}
    cpus = [device.name for device in topology.devices if device.kind == "package"] if over else []
    for uplink, pairs in over.items():
        senders, roots = (len(set(names)) for names in zip(*pairs, strict=True))
        name = topology.by_name[uplink.sender].name
        for limit in limits():
            many = senders >= limit.senders and roots >= limit.receivers
            if many and fnmatchcase(name, limit.switch) and any(fnmatchcase(cpu, limit.cpu) for cpu in cpus):
                found[uplink] = limit
    return found


def _writes(topology: Topology, taken: Mapping[Flow, tuple[SubFlow, ...]]) -> Iterator[tuple[Hop, str, str]]:
    """For each copy between GPUs through a processor: the sender's uplink, the sender, the receiver's root port."""
    for flow, several in taken.items():
        ends = [topology.find(end) for end in flow.ends]
        if len(ends) == 2 and all(end and end.kind == "gpu" for end in ends):
            for way in (way for sub_flow in several for way in sub_flow):
                up = _last(topology, way, "upstream-port", "root-port")
                down = _last(topology, way, "root-port", "upstream-port")
                if up and down:
                    yield up, flow.ends[0], down.sender


def _last(topology: Topology, way: Route, sender: str, receiver: str) -> Hop | None:
    kinds = {hop: (topology.by_name[hop.sender].kind, topology.by_name[hop.receiver].kind) for hop in way}
    return next((hop for hop in reversed(way) if kinds[hop] == (sender, receiver)), None)
