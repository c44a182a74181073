"""Processors and their memory: packages, the links between them, and their NUMA nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..catalog.cpus import Processor, processor_of
from ..catalog.gpus import product_of
from ..facts.gpu import Gpu
from ..facts.machine import Node, Numa, Package, Pci
from ..facts.merge import Facts, of
from ..graph.topology import Device, Link, Topology


def processors(facts: Facts) -> Iterator[tuple[Device, Link | None]]:
    """Packages, the links between each two of them, and their NUMA nodes."""
    packages, numas = of(facts, Package), of(facts, Numa)
    names, known = list(packages), _known(facts)
    for index, (name, package) in enumerate(packages.items()):
        device = Device(name, "package", package.model or "")
        yield device, None
        for other in names[:index]:
            yield device, _joined(other, name, known if len(names) == 2 else {})
    for name, numa in numas.items():
        number = int(name[4:]) if name[4:].isdecimal() else None
        home = _home(numa, packages, numas)
        kind = "internal" if home in packages else "interconnect"
        link = Link(f"{home}>{name}", home, name, kind) if home else None
        yield Device(name, "numa", "", number), link


def memory(facts: Facts) -> Iterator[Link]:
    """The memory of each NUMA node that has CPUs, if the processor is known. Not in a virtual machine: its share of the
    host's memory bandwidth is unknown.

    The rated rate is the processor's maximum: all channels filled with the fastest modules. Only root may read how many
    channels are filled. The NUMA nodes of a package have equal shares of the rate.
    """
    packages, numas = of(facts, Package), of(facts, Numa)
    homes = {name: _home(numa, packages, numas) for name, numa in numas.items() if numa.cpus}
    nodes = Counter(homes.values())
    known = _known(facts)
    for name, home in homes.items():
        if home in known:
            rate = known[home].memory_rate / nodes[home]
            yield Link(f"{name}/memory", name, name, "memory", rate, grade=known[home].memory)


def with_cpus(topology: Topology) -> list[str]:
    """The NUMA nodes that have CPUs. A node with memory only is attached to one of these."""
    alone = {link.b for link in topology.links if link.kind == "interconnect"}
    return [device.id for device in topology.devices if device.kind == "numa" and device.id not in alone]


def _known(facts: Facts) -> Mapping[str | None, Processor]:
    """The packages that the catalog knows. Empty in a virtual machine, where the hypervisor defines the packages."""
    node = of(facts, Node).get("node")
    if node and node.virtual:
        return {}
    packages, numas, functions = of(facts, Package), of(facts, Numa), of(facts, Pci)
    products = [product_of(gpu, functions) for gpu in of(facts, Gpu).values()]
    beside = {product.name for product in products if product}
    found: dict[str | None, Processor] = {}
    for name, package in packages.items():
        sizes = [numa.memory for numa in numas.values() if numa.cpus and _home(numa, packages, numas) == name]
        processor = processor_of(package, beside, sum(size or 0 for size in sizes) if all(sizes) else None)
        if processor:
            found[name] = processor
    return found


def _joined(one: str, other: str, known: Mapping[str | None, Processor]) -> Link:
    """The link between two packages. It has a rate if both are equal and the machine has no others."""
    processor = known.get(one)
    same = processor if processor is known.get(other) else None
    joint = same.interconnect if same else None
    rate, grade = (joint.links * joint.rate, joint.grade) if joint else (None, "")
    return Link(f"{one}>{other}", one, other, "interconnect", rate, grade=grade)


def _home(numa: Numa, packages: Mapping[str, Package], numas: Mapping[str, Numa]) -> str | None:
    """The package with the NUMA node's CPUs. For a node with memory only: the nearest NUMA node with CPUs."""
    for name, package in packages.items():
        if numa.cpus and package.cpus and set(numa.cpus) & set(package.cpus):
            return name
    near = {n: d for n, d in (numa.distances or {}).items() if n != numa.key and n in numas and numas[n].cpus}
    if near:
        return min(near, key=lambda name: near[name])
    return next(iter(packages)) if len(packages) == 1 else None
