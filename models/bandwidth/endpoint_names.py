"""Ends of flows as users write them: all names of inventory/name_resolver.py, and patterns: "gpu*"."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..graph.path_types import natural, nics
from ..graph.topology import Device, Topology
from ..inventory.name_resolver import devices_called, names_of_kernel, unknown
from ..inventory.snapshot import Snapshot
from .link_levels import short

# A pattern applies to these kinds. If it matches none of them, it applies to all others: block devices, network
# devices.
_ENDS = frozenset({"gpu", "nic", "port", "numa", "nvme", "array"})


def resolve_ends(snapshot: Snapshot, text: str) -> tuple[str, ...]:
    """The ends that a name or a shell pattern means, in natural order, with their names in flows.

    Case does not matter. A NIC means its first port, so that the path includes the wire. LookupError carries a sentence
    for the user.
    """
    topology = snapshot.topology
    if any(sign in text for sign in "*?[") and not topology.find(text):
        return _matching(topology, text)
    devices = [device for name in devices_called(snapshot, text) if (device := topology.find(name))]
    ends = tuple(dict.fromkeys(_end(topology, device) for device in devices))
    if not ends:
        raise LookupError(unknown(snapshot, text))
    if len(ends) > 1:
        raise LookupError(f"{text!r} has {len(ends)} devices: name one of {', '.join(ends)}")
    return ends


def _matching(topology: Topology, text: str) -> tuple[str, ...]:
    """The ends that a shell pattern means. Raises LookupError."""
    names = [(name.lower(), device) for device in topology.devices for name in names_of_kernel(device)]
    names += [(f"nic{number}", nic.device) for number, nic in enumerate(nics(topology))]
    found = dict.fromkeys(_end(topology, device) for name, device in names if fnmatchcase(name, text.lower()))
    if not found:
        raise LookupError(f"nothing in this node matches {text!r}; 'linkgauge topology' lists all names")
    return tuple(sorted([end for end in found if _is_usual(topology, end)] or found, key=natural))


def _end(topology: Topology, device: Device) -> str:
    """The name of a device in flows; for a NIC, its first port."""
    port = device.kind == "nic" and next((o.b for o in topology.links if o.a == device.id and o.kind == "port"), None)
    return port or short(device)


def _is_usual(topology: Topology, end: str) -> bool:
    """Whether a pattern includes the end. Not the dozens of NUMA nodes of Grace without memory, if other nodes have
    known memory.
    """
    device = topology.by_name[end]
    if device.kind == "numa":
        return device.id in topology.memory or not any(name.startswith("numa") for name in topology.memory)
    return device.kind in _ENDS
