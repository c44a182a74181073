"""From merged facts to a topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from ..facts.gpu import Gpu
from ..facts.machine import Array, Disk, HostBridge, Node, Numa, Nvme, Package, Pci, Rdma
from ..facts.merge import Facts, of
from ..facts.pci_classes import kind_of
from ..graph.topology import FABRIC, Device, Link, Topology
from ..site.schema import Machine, Site
from .device_ids import identified
from .gpu_links import gpu_links, gpu_memory
from .nic_ports import nic_ports
from .pci_tree import host_bridges, pci_devices, pci_links
from .sockets import memory, processors
from .virtualized_links import hidden_links


def build_topology(facts: Facts, site: Site, machine: Machine | None = None) -> Topology:
    """Processors and memory, the PCI tree, and the devices that drivers create on it: ports, disks, arrays.

    The machine type supplies values that cannot be read: links that a hypervisor hides, rates of ports.
    """
    functions = of(facts, Pci)
    node = of(facts, Node).get("node")
    trusted = site.trust_virtual_links or not (node and node.virtual)
    bridges = list(host_bridges(functions, of(facts, HostBridge), of(facts, Numa)))
    parts = [*processors(facts), *nic_ports(facts, machine), *_disks(facts)]
    devices = [device for device, _ in parts] + [device for device, _ in bridges]
    devices += pci_devices(functions, _aliases(facts))
    links = [link for _, link in (*parts, *bridges) if link]
    tree = list(pci_links(functions, trusted))
    links += hidden_links(tree, facts, machine) if machine and not trusted else tree
    known = {device.id for device in devices}
    if any(link.a == "host" for link in links):
        devices.append(Device("host", "host"))
        links += [Link(f"host>{name}", "host", name, "internal") for name in of(facts, Package)]
    devices += [Device(gpu.key, "gpu", gpu.name or "") for gpu in of(facts, Gpu).values() if gpu.address not in known]
    links += (joining := dict.fromkeys(gpu_links(facts).values()))
    devices += _fabric({link.b for link in joining if link.kind == "nvlink"}, functions)
    once = {device.id: device for device in devices}
    own = [link for link in (*memory(facts), *gpu_memory(facts)) if link.a in once]
    joined = [link for link in links if link.a != link.b and {link.a, link.b} <= once.keys()]
    return Topology(tuple(identified(once.values(), facts)), (*own, *joined))


def _fabric(ends: Collection[str], functions: Mapping[str, Pci]) -> Iterator[Device]:
    """All NVSwitches as one device (see Topology.hops). Empty if no NVLink ends at a switch."""
    switches = [end for end in ends if end in functions and kind_of(functions[end]) == "nvswitch"]
    if switches or FABRIC in ends:
        yield Device(FABRIC, "fabric", f"{len(switches)} NVSwitches" if switches else "")


def _disks(facts: Facts) -> Iterator[tuple[Device, Link | None]]:
    """Disks below their controllers, partitions below disks, and arrays with their members."""
    for key, disk in of(facts, Disk).items():
        kind = "partition" if disk.partition_of else "disk"
        yield _below(disk.partition_of or disk.address, Device(key, kind, disk.model or ""), "disk")
    for key, array in of(facts, Array).items():
        device = Device(key, "array", array.level or "")
        yield device, None
        for member in array.members or ():
            yield device, Link(f"{member}>{key}", member, key, "member")


def _below(parent: str | None, device: Device, kind: str) -> tuple[Device, Link | None]:
    return device, Link(f"{parent}>{device.id}", parent, device.id, kind) if parent else None


def _aliases(facts: Facts) -> dict[str, tuple[str, ...]]:
    """The names that drivers give to functions, by PCI address: gpu0, mlx5_0, nvme0."""
    names: dict[str, list[str]] = defaultdict(list)
    for kind in (Gpu, Rdma, Nvme):
        for fact in of(facts, kind).values():
            address = fact.address  # type: ignore[attr-defined]
            if address:
                names[address].append(fact.key)
    return {address: tuple(keys) for address, keys in names.items()}
