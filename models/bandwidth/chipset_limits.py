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


def contended(topology: Topology, routed: Mapping[Flow, tuple[SubFlow, ...]]) -> Mapping[Hop, Limit]:
    """The uplinks of switches that a known chipset limit holds under these flows. Switch names are those of pci.ids."""
    over = defaultdict[Hop, list[tuple[str, str]]](list)
    for uplink, sender, root in _writes(topology, routed):
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


def _writes(topology: Topology, routed: Mapping[Flow, tuple[SubFlow, ...]]) -> Iterator[tuple[Hop, str, str]]:
    """For each copy between GPUs through a processor: the sender's uplink, the sender, the receiver's root port."""
    for flow, several in routed.items():
        ends = [topology.find(end) for end in flow.ends]
        if len(ends) == 2 and all(end and end.kind == "gpu" for end in ends):
            for path in (path for sub_flow in several for path in sub_flow):
                up = _last(topology, path, "upstream-port", "root-port")
                down = _last(topology, path, "root-port", "upstream-port")
                if up and down:
                    yield up, flow.ends[0], down.sender


def _last(topology: Topology, path: Route, sender: str, receiver: str) -> Hop | None:
    kinds = {hop: (topology.by_name[hop.sender].kind, topology.by_name[hop.receiver].kind) for hop in path}
    return next((hop for hop in reversed(path) if kinds[hop] == (sender, receiver)), None)
