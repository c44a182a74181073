"""From merged facts to a topology."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from .facts import Array, Disk, HostBridge, Net, Node, Numa, Nvme, Package, Pci, Port, Rdma
from .gpu_facts import Gpu
from .gpu_links import gpu_links
from .merge import Facts, of
from .pci_classes import kind_of
from .pci_tree import host_bridges, pci_devices, pci_links
from .site import Site
from .topology import FABRIC, Device, Link, Topology


def build_topology(facts: Facts, site: Site) -> Topology:
    """Processors and memory, the PCI tree, and what drivers made of its functions: ports, disks, arrays."""
    functions = of(facts, Pci)
    node = of(facts, Node).get("node")
    trusted = site.trust_virtual_links or not (node and node.virtual)
    bridges = list(host_bridges(functions, of(facts, HostBridge), of(facts, Numa)))
    parts = [*_processors(facts), *_ports(facts), *_disks(facts)]
    devices = [device for device, _ in parts] + [device for device, _ in bridges]
    devices += pci_devices(functions, _aliases(facts))
    links = [link for _, link in (*parts, *bridges) if link]
    links += pci_links(functions, trusted)
    known = {device.id for device in devices}
    if any(link.a == "host" for link in links):
        devices.append(Device("host", "host"))
        links += [Link(f"host>{name}", "host", name, "internal") for name in of(facts, Package)]
    devices += [Device(gpu.key, "gpu", gpu.name or "") for gpu in of(facts, Gpu).values() if gpu.address not in known]
    links += (joining := dict.fromkeys(gpu_links(facts).values()))
    devices += _fabric({link.b for link in joining if link.kind == "nvlink"}, functions)
    once = {device.id: device for device in devices}
    joined = tuple(link for link in links if link.a != link.b and {link.a, link.b} <= once.keys())
    return Topology(tuple(once.values()), joined)


def _fabric(ends: Collection[str], functions: Mapping[str, Pci]) -> Iterator[Device]:
    """All NVSwitches as one device (Topology.hops says why); none where no NVLink ends at a switch."""
    switches = [end for end in ends if end in functions and kind_of(functions[end]) == "nvswitch"]
    if switches or FABRIC in ends:
        yield Device(FABRIC, "fabric", f"{len(switches)} NVSwitches" if switches else "")


def _processors(facts: Facts) -> Iterator[tuple[Device, Link | None]]:
    """Packages, joined pairwise, and the NUMA nodes that belong to them."""
    packages, numas = of(facts, Package), of(facts, Numa)
    names = list(packages)
    for index, (name, package) in enumerate(packages.items()):
        yield Device(name, "package", package.model or ""), None
        for other in names[:index]:
            yield Device(name, "package", package.model or ""), Link(f"{other}>{name}", other, name, "interconnect")
    for name, numa in numas.items():
        number = int(name[4:]) if name[4:].isdecimal() else None
        home = _home(numa, packages, numas)
        kind = "internal" if home in packages else "interconnect"
        link = Link(f"{home}>{name}", home, name, kind) if home else None
        yield Device(name, "numa", "", number), link


def _home(numa: Numa, packages: Mapping[str, Package], numas: Mapping[str, Numa]) -> str | None:
    """The package whose CPUs the NUMA node has; for memory alone, the nearest NUMA node that has CPUs."""
    for name, package in packages.items():
        if numa.cpus and package.cpus and set(numa.cpus) & set(package.cpus):
            return name
    near = {n: d for n, d in (numa.distances or {}).items() if n != numa.key and n in numas and numas[n].cpus}
    if near:
        return min(near, key=lambda name: near[name])
    return next(iter(packages)) if len(packages) == 1 else None


def _ports(facts: Facts) -> Iterator[tuple[Device, Link | None]]:
    """RDMA ports and network devices, below the functions or the ports that they belong to."""
    adapters = of(facts, Rdma)
    shared: dict[str, str] = {}
    for key, port in of(facts, Port).items():
        adapter = adapters.get(port.device or "")
        rate = port.rate if port.state == "ACTIVE" else None  # of a port that is down, the kernel shows what it may do
        if adapter and adapter.address:
            shared.update({port.netdev: key} if port.netdev else {})
            yield _below(adapter.address, Device(key, "port"), "port", rate)
        else:  # a software device (rxe, siw) lives on a network device
            yield _below(port.netdev, Device(key, "port"), "function", rate)
    for key, net in of(facts, Net).items():
        if key in shared:
            yield _below(shared[key], Device(key, "netdev"), "function", None)
        else:
            yield _below(net.address, Device(key, "netdev"), "port", net.speed)


def _disks(facts: Facts) -> Iterator[tuple[Device, Link | None]]:
    """Disks below their controllers, partitions below disks, arrays beside their members."""
    for key, disk in of(facts, Disk).items():
        kind = "partition" if disk.partition_of else "disk"
        yield _below(disk.partition_of or disk.address, Device(key, kind, disk.model or ""), "disk", None)
    for key, array in of(facts, Array).items():
        device = Device(key, "array", array.level or "")
        yield device, None
        for member in array.members or ():
            yield device, Link(f"{member}>{key}", member, key, "member")


def _below(parent: str | None, device: Device, kind: str, trained: float | None) -> tuple[Device, Link | None]:
    link = Link(f"{parent}>{device.id}", parent, device.id, kind, None, trained) if parent else None
    return device, link


def _aliases(facts: Facts) -> dict[str, tuple[str, ...]]:
    """The names that drivers give to functions, by address: gpu0, mlx5_0, nvme0."""
    names: dict[str, list[str]] = defaultdict(list)
    for kind in (Gpu, Rdma, Nvme):
        for fact in of(facts, kind).values():
            address = fact.address  # type: ignore[attr-defined]
            if address:
                names[address].append(fact.key)
    return {address: tuple(keys) for address, keys in names.items()}
