"""The bandwidth hierarchy of a node, from GPU memory to disks: its levels and the flows that measure each level."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..facts.records import EGRESS, Flow
from ..graph.path_types import natural, nearest, nics
from ..graph.routes import routes
from ..graph.topology import Device, Topology
from ..inventory.snapshot import Snapshot
from ..report import Level
from .expectations import level_of


class Tier(Struct, frozen=True):
    """One level of the hierarchy: flows of one kind that should be equally fast, such as "GPU to GPU", with their
    rates.
    """

    name: str
    levels: tuple[Level, ...]


def hierarchy(snapshot: Snapshot) -> tuple[Tier, ...]:
    """The levels of a node from fastest to slowest. Levels without devices are left out."""
    kinds = {
        "GPU memory": _memories(snapshot.topology, "gpu"),
        "GPU to GPU": _between_gpus(snapshot.topology),
        "host to GPU": _to_host(snapshot.topology, "gpu", away=False),
        "GPU to host": _to_host(snapshot.topology, "gpu", away=True),
        "GPU to NIC": _gpu_to_nic(snapshot.topology),
        "NIC to wire": _wires(snapshot.topology),
        "node to network": _egress(snapshot.topology),
        "host memory": _memories(snapshot.topology, "numa"),
        "disk to host": _to_host(snapshot.topology, "nvme", away=True),
        "array to host": _to_host(snapshot.topology, "array", away=True),
    }
    tiers = ((name, tuple(level_of(snapshot, flow) for flow in flows)) for name, flows in kinds.items())
    return tuple(Tier(name, levels) for name, levels in tiers if levels)


def short(device: Device) -> str:
    """The driver's name for a device, else its id."""
    return device.aliases[0] if device.aliases else device.id


def _of_kind(topology: Topology, kind: str) -> list[Device]:
    return sorted((one for one in topology.devices if one.kind == kind), key=lambda one: natural(short(one)))


def _memories(topology: Topology, kind: str) -> Iterator[Flow]:
    """STREAM's triad, the operation of most published memory rates."""
    for device in _of_kind(topology, kind):
        if device.id in topology.memory:
            yield Flow("triad", (short(device),))


def _between_gpus(topology: Topology) -> Iterator[Flow]:
    """Each GPU to the next. Over NVLink all pairs are equal; over PCIe some pairs cross sockets."""
    gpus = [short(one) for one in _of_kind(topology, "gpu")]
    for one, two in zip(gpus, gpus[1:] + gpus[:1], strict=True):
        if one != two:
            yield Flow("copy", (one, two))


def _to_host(topology: Topology, kind: str, away: bool) -> Iterator[Flow]:
    """To the nearest NUMA node with memory, or from it."""
    op = "copy" if kind == "gpu" else "read"
    member = {link.b: link.a for link in reversed(topology.links) if link.kind == "member"}
    for device in _of_kind(topology, kind):
        near_routes = routes(topology, member.get(device.id, device.id))  # nearest first
        numa = next((name for name in near_routes if topology.by_name[name].kind == "numa"), None)
        if numa:
            yield Flow(op, (short(device), numa) if away else (numa, short(device)))


def _gpu_to_nic(topology: Topology) -> Iterator[Flow]:
    """Each GPU to the first of its nearest NICs."""
    for gpu in _of_kind(topology, "gpu"):
        near = next(nearest(topology, gpu.id), None)
        port = _port(topology, near[0].device.id) if near else None
        if port:
            yield Flow("write", (short(gpu), port))


def _wires(topology: Topology) -> Iterator[Flow]:
    for nic in nics(topology):
        if port := _port(topology, nic.device.id):
            yield Flow("write", (nic.name, port))


def _egress(topology: Topology) -> Iterator[Flow]:
    """All GPUs to all their NICs at once; without GPUs, all NICs."""
    gpus = tuple(short(one) for one in _of_kind(topology, "gpu"))
    if found := nics(topology):
        yield Flow(EGRESS, gpus or tuple(nic.name for nic in found))


def _port(topology: Topology, nic: str) -> str | None:
    return next((link.b for link in topology.links if link.a == nic and link.kind == "port"), None)
