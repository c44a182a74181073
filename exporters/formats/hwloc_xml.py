"""A topology as the XML of hwloc 2 (hwloc2.dtd), for programs that read HWLOC_XMLFILE: `lstopo -i FILE`.

The kernel's facts have no caches and no cores, so processing units are direct children of packages and NUMA nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TypeAlias
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ...models.facts.gpu import Gpu
from ...models.facts.machine import Disk, HostBridge, Net, Node, Numa, Package, Pci, Rdma
from ...models.facts.pci_classes import kind_of
from ...models.facts.pcie_rates import rated
from ...models.inventory.snapshot import Snapshot

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
_BLOCK, _NETWORK, _OPENFABRICS, _COPROCESSOR = 0, 2, 3, 5  # hwloc_obj_osdev_type_t of hwloc 2
Numbers: TypeAlias = "count[int]"  # of gp_index, which is unique within the file


def as_hwloc_xml(snapshot: Snapshot) -> str:
    """Packages, NUMA nodes, processing units, the PCI tree, and the devices of drivers. Raises ValueError without any
    NUMA node with processors: hwloc reads no such file.
    """
    numas = {key: one for key, one in snapshot.of(Numa).items() if one.cpus}
    if not numas:
        raise ValueError("the NUMA nodes and their processors are not known, and hwloc needs them")
    numbers, root = count(1), Element("topology", version="2.0")
    cpus = sorted({cpu for one in numas.values() for cpu in one.cpus or ()})
    machine = _object(root, "Machine", numbers, cpus, [_number(key) for key in snapshot.of(Numa)], os_index="0")
    if (node := snapshot.of(Node).get("node")) and node.hostname:
        SubElement(machine, "info", name="HostName", value=_text(node.hostname))
    places = _processors(snapshot, machine, numbers)
    _pci(snapshot, machine, places, numbers)
    indent(root, "  ")
    return f"{_HEAD}{tostring(root, encoding='unicode')}\n"


def _processors(snapshot: Snapshot, machine: Element, numbers: Numbers) -> Mapping[str, Element]:
    """Add packages and NUMA nodes; the element of each NUMA node, at which its PCI roots hang."""
    places: dict[str, Element] = {}
    packages = {key: one for key, one in snapshot.of(Package).items() if one.cpus}
    for numa, one in snapshot.of(Numa).items():
        if not one.cpus:  # memory alone: CXL, or the memory of a GPU
            _memory(machine, numa, one, (), numbers)
    for key, package in packages.items():
        cpus, number = package.cpus or (), str(_number(key))
        inside = {numa: one for numa, one in snapshot.of(Numa).items() if not {*cpus}.isdisjoint(one.cpus or ())}
        above = _object(machine, "Package", numbers, cpus, map(_number, inside), os_index=number)
        for name, value in (("CPUVendor", package.vendor), ("CPUModel", package.model)):
            if value:
                SubElement(above, "info", name=name, value=_text(value))
        for numa, one in inside.items():
            places[numa] = _numa(above, numa, one, len(inside) > 1, numbers)
    for numa, one in snapshot.of(Numa).items():
        if one.cpus and numa not in places:  # the packages are not known
            places[numa] = _numa(machine, numa, one, True, numbers)
    return places


def _numa(above: Element, key: str, numa: Numa, several: bool, numbers: Numbers) -> Element:
    """Add a NUMA node with its processing units; in a group of its own if its parent has several NUMA nodes."""
    nodes = [_number(key)]
    cpus = numa.cpus or ()
    place = _object(above, "Group", numbers, cpus, nodes) if several else above
    _memory(place, key, numa, cpus, numbers)
    for cpu in cpus:
        _object(place, "PU", numbers, [cpu], nodes, os_index=str(cpu))
    return place


def _memory(place: Element, key: str, numa: Numa, cpus: Iterable[int], numbers: Numbers) -> None:
    number = _number(key)
    made = _object(place, "NUMANode", numbers, cpus, [number], os_index=str(number))
    if numa.memory is not None:
        made.set("local_memory", str(numa.memory))


def _pci(snapshot: Snapshot, machine: Element, places: Mapping[str, Element], numbers: Numbers) -> None:
    """Add the PCI roots with a device below them, each at its NUMA node."""
    below: dict[str, list[Pci]] = defaultdict(list)
    for function in snapshot.of(Pci).values():
        if function.parent:
            below[function.parent].append(function)
    drivers = _drivers(snapshot)
    for key, root in snapshot.of(HostBridge).items():
        if root.parent is None and (several := _buses(key, below)):
            place = places.get(f"numa{root.numa}", machine)
            domain = key.removeprefix("pci").partition(":")[0]
            ranges = {
                "bridge_type": "0-1",
                "depth": "0",
                "bridge_pci": f"{domain}:[{several[0]:02x}-{several[-1]:02x}]",
            }
            made = SubElement(place, "object", {"type": "Bridge", "gp_index": str(next(numbers)), **ranges})
            for function in below[key]:
                _function(made, function, below, drivers, numbers, 1)


def _function(
    above: Element,
    one: Pci,
    below: Mapping[str, list[Pci]],
    drivers: Mapping[str, list[tuple[str, int]]],
    numbers: Numbers,
    depth: int,
) -> None:
    """Add a function, what is below it, and the devices of its driver. Bridges without a device are left out."""
    about = {"pci_busid": one.key, "pci_type": _type(one), "pci_link_speed": f"{_speed(one):.6f}"}
    inner = below.get(one.key, [])
    if inner:
        several = _buses(one.key, below)
        about |= {"bridge_type": "1-1", "depth": str(depth)}
        about["bridge_pci"] = f"{one.key.partition(':')[0]}:[{several[0]:02x}-{several[-1]:02x}]"
    elif "port" in kind_of(one) or kind_of(one) == "bridge" or (one.pci_class or 0) >> 8 == 0x0604:
        return
    tag = "Bridge" if inner else "PCIDev"
    made = SubElement(above, "object", {"type": tag, "gp_index": str(next(numbers)), **about})
    if one.name:
        SubElement(made, "info", name="PCIDevice", value=_text(one.name))
    if one.slot:
        SubElement(made, "info", name="PCISlot", value=_text(one.slot))
    for function in inner:
        _function(made, function, below, drivers, numbers, depth + 1)
    for name, kind in drivers.get(one.key, []):
        about = {"name": name, "osdev_type": str(kind)}
        SubElement(made, "object", {"type": "OSDev", "gp_index": str(next(numbers)), **about})


def _drivers(snapshot: Snapshot) -> Mapping[str, list[tuple[str, int]]]:
    """The devices of drivers by PCI address: name and type. hwloc calls a GPU of NVML nvml0."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for kind, number in ((Net, _NETWORK), (Rdma, _OPENFABRICS), (Disk, _BLOCK)):
        for key, fact in snapshot.of(kind).items():
            if address := getattr(fact, "address", None):
                found[address].append((key, number))
    for key, gpu in snapshot.of(Gpu).items():
        if gpu.address:
            found[gpu.address].append((f"nvml{key.removeprefix('gpu')}", _COPROCESSOR))
    return found


def _buses(key: str, below: Mapping[str, list[Pci]]) -> list[int]:
    """The numbers of the buses below a bridge, in ascending order."""
    found: set[int] = set()
    waiting, seen = [key], {key}
    while waiting:
        for one in below.get(waiting.pop(), []):
            found.add(int(one.key.split(":")[1], 16))
            if one.key not in seen:  # a defective dump may contain a cycle
                seen.add(one.key)
                waiting.append(one.key)
    return sorted(found)


def _object(
    above: Element, kind: str, numbers: Numbers, cpus: Iterable[int], nodes: Iterable[int], **others: str
) -> Element:
    cpu_mask, node_mask = _mask(cpus), _mask(nodes)
    sets = {"cpuset": cpu_mask, "complete_cpuset": cpu_mask, "nodeset": node_mask, "complete_nodeset": node_mask}
    if kind == "Machine":
        sets |= {"allowed_cpuset": cpu_mask, "allowed_nodeset": node_mask}
    return SubElement(above, "object", {"type": kind, "gp_index": str(next(numbers)), **others, **sets})


def _mask(bits: Iterable[int]) -> str:
    """The mask as hwloc writes it: groups of 32 bits, the highest first."""
    number = sum(1 << bit for bit in {*bits})
    groups = [f"0x{number >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(number.bit_length(), 1), 32)]
    return ",".join(reversed(groups))


def _type(one: Pci) -> str:
    """ "0302 [10de:2330] [10de:16c1] 00"; the revision is not known."""
    numbers = [one.vendor or 0, one.device or 0, one.subvendor or 0, one.subdevice or 0]
    return "{:04x} [{:04x}:{:04x}] [{:04x}:{:04x}] 00".format((one.pci_class or 0) >> 8, *numbers)


def _speed(one: Pci) -> float:
    """GB/s of the link, as hwloc computes it; 0: not known."""
    return rated(one.speed, one.width) / 1e9 if one.speed and one.width else 0.0


def _number(key: str) -> int:
    digits = key.lstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits) if digits.isdecimal() else 0


def _text(text: str) -> str:
    """The text without characters that XML does not allow."""
    return "".join(one for one in text if one.isprintable())
