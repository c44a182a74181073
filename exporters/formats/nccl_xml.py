"""A topology as the XML that NCCL and RCCL read (NCCL_TOPO_FILE), in the layout that they write (NCCL_TOPO_DUMP_FILE).

Source of the format: NVIDIA/nccl src/graph/xml.cc, xml.h and topo.cc at v2.30.7, and the same files of ROCm/rccl.
docs/operate/nccl-xml.md lists the content. NCCL's own parser does not accept <?xml ...?>, entities or tabs. It needs
exactly one space between attributes and reads at most 256 elements. NCCL detects missing values on its machine.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from msgspec import Struct, field

from ...models.facts.gpu import Gpu
from ...models.facts.machine import Numa, Package, Pci, Port, Rdma
from ...models.facts.pci_classes import AMD, card_of, kind_of
from ...models.facts.pcie_rates import speed_of
from ...models.graph.topology import FABRIC
from ...models.inventory.pci_tree import functions_above
from ...models.inventory.snapshot import Snapshot

MOST = 256  # elements that NCCL reads at most (NCCL_TOPO_XML_MAX_NODES in src/graph/topo.h)
_HIDDEN = "fffffff:ff:ff.0"  # NVML's address of an NVSwitch that a virtual machine or a rack hides
_BRIDGE, _SWITCH, _PROCESSOR = 0x060400, 0x068000, 0x068001
_GRADE = re.compile(r"pcie([0-9]+)x([0-9]+)")
_GPU = re.compile(r"gpu([0-9]+)")
_NAME = re.compile(r"[\w.:+-]{1,200}", re.ASCII)
# Vendor in proc/cpuinfo (on Arm the implementer) -> NCCL's name of the instruction set.
_ARCHITECTURES = {
    **dict.fromkeys(("GenuineIntel", "AuthenticAMD", "HygonGenuine", "CentaurHauls"), "x86_64"),
    **dict.fromkeys(("ARM", "NVIDIA", "Ampere", "FUJITSU", "HiSilicon"), "arm64"),
}

_Joined: TypeAlias = Mapping[str, Counter[tuple[str, str]]]  # device -> (kind, other end) -> number of links


class _Element(Struct, frozen=True):
    """An XML element; attributes that are None are left out."""

    tag: str
    attributes: Mapping[str, object]
    below: list[_Element] = field(default_factory=list)


def as_nccl_xml(snapshot: Snapshot) -> str:
    """GPUs, network devices, the switches above them, and the NVLink, C2C and xGMI links that are not down.

    Virtual functions are left out. If there are more elements than NCCL reads, network devices without RDMA are left
    out too.
    """
    rdma = {adapter.address for adapter in snapshot.of(Rdma).values()}
    kinds = {address: kind_of(function) for address, function in snapshot.of(Pci).items() if not function.physfn}
    wanted = sorted(address for address, kind in kinds.items() if kind in ("gpu", "nic") or address in rdma)
    system = _system(snapshot, wanted)
    if _size(system) > MOST:
        system = _system(snapshot, [address for address in wanted if kinds[address] == "gpu" or address in rdma])
    return "".join(f"{line}\n" for line in _lines(system, 0))


def _system(snapshot: Snapshot, wanted: list[str]) -> _Element:
    """The tree above the wanted functions. A switch is shown as its upstream port: NCCL skips every second bridge."""
    functions, joined = snapshot.of(Pci), _joined(snapshot)
    tops: dict[int, list[_Element]] = defaultdict(list)  # by NUMA node
    placed: dict[str, _Element] = {}
    for address in wanted:
        line = [address, *functions_above(address, functions)]
        below = tops[_numa(snapshot, line[-1])]
        for name in reversed(line[::2]):
            if name not in placed:
                placed[name] = _Element("pci", _function(snapshot, name, bridge=name != address))
                below.append(placed[name])
            below = placed[name].below
        below += _gpu(snapshot, address, joined) if kind_of(functions[address]) == "gpu" else _nic(snapshot, address)
    for several in (*tops.values(), *(element.below for element in placed.values())):
        several.sort(key=lambda element: str(element.attributes.get("busid", "")))
    cpus = [number for n in tops if (numa := snapshot.of(Numa).get(f"numa{n}")) for number in numa.cpus or ()]
    groups = max(cpus, default=0) // 32 + 1
    amd = any(kind_of(functions[address]) == "gpu" and functions[address].vendor == AMD for address in wanted)
    nodes = [_Element("cpu", _cpu(snapshot, number, groups), tops[number]) for number in sorted(tops)]
    return _Element("system", {"version": 2 if amd else 1}, nodes)


def _numa(snapshot: Snapshot, top: str) -> int:
    """The NUMA node of a top-level function; -1 if it is not known, as in sysfs."""
    function, devices = snapshot.of(Pci)[top], snapshot.topology.by_name
    ends = (link.a for link in snapshot.topology.links if link.b == function.parent)
    numbers = [devices[end].numa_node for end in ends if devices[end].kind == "numa"]
    return next((number for number in (*numbers, function.numa) if number is not None), -1)


def _cpu(snapshot: Snapshot, number: int, groups: int) -> dict[str, object]:
    """The attributes of a cpu element. NCCL detects the missing ones itself: familyid and modelid."""
    numa = snapshot.of(Numa).get(f"numa{number}")
    vendor = next((p.vendor for p in snapshot.of(Package).values() if p.vendor in _ARCHITECTURES), None)
    return {
        "numaid": number,
        "affinity": _mask(numa.cpus, groups) if numa and numa.cpus is not None else None,
        "arch": _ARCHITECTURES.get(vendor or ""),
        "vendor": vendor,
    }


def _mask(cpus: tuple[int, ...], groups: int) -> str:
    """ "0000ffff,00000000": groups of 32 CPUs, the lowest group last, like a cpumap in sysfs."""
    bits = sum(1 << cpu for cpu in cpus)
    return ",".join(f"{bits >> 32 * n & 0xFFFFFFFF:08x}" for n in reversed(range(groups)))


def _function(snapshot: Snapshot, address: str, bridge: bool) -> dict[str, object]:
    """The attributes of a PCI function with its rated link: the present speed of an idle GPU is too low for NCCL."""
    function = snapshot.of(Pci)[address]
    pci_class = function.pci_class if function.pci_class is not None else _BRIDGE if bridge else None
    speed, width = _rated(snapshot, address)
    return {
        "busid": address,
        "class": _hexadecimal(pci_class, 6),
        "vendor": _hexadecimal(function.vendor, 4),
        "device": _hexadecimal(function.device, 4),
        "subsystem_vendor": _hexadecimal(function.subvendor, 4),
        "subsystem_device": _hexadecimal(function.subdevice, 4),
        "link_speed": speed,
        "link_width": width,
    }


def _hexadecimal(number: int | None, digits: int) -> str | None:
    return None if number is None else f"0x{number:0{digits}x}"


def _rated(snapshot: Snapshot, address: str) -> tuple[str | None, int | None]:
    """Rated speed and width of the link above a function, or above function 0 of its card.

    A hypervisor hides the real link, so in a virtual machine both come from the machine type or the driver.
    """
    below = snapshot.topology.link_below
    link = below.get(address) or below.get(f"{card_of(address)}.0")
    if link and (found := _GRADE.fullmatch(link.grade)):
        return _speed(speed_of(int(found[1]))), int(found[2])
    driver = next((gpu for gpu in snapshot.of(Gpu).values() if gpu.address == address), None)
    if driver and driver.pcie_max_speed and driver.pcie_max_width:
        return _speed(driver.pcie_max_speed), driver.pcie_max_width
    return None, None


def _speed(speed: float) -> str:
    """The kernel's format since 5.7, the only one that NCCL reads for all speeds: "32.0 GT/s PCIe"."""
    return f"{speed / 1e9:.1f} GT/s PCIe"


def _joined(snapshot: Snapshot) -> _Joined:
    """The number of links between each two devices. NCCL does not count links that are down."""
    ends: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for link in snapshot.topology.links:
        if link.kind in ("nvlink", "xgmi") and link.trained != 0:
            ends[link.a][link.kind, link.b] += 1
            ends[link.b][link.kind, link.a] += 1
    return ends


def _gpu(snapshot: Snapshot, address: str, joined: _Joined) -> Iterator[_Element]:
    """A GPU with a driver number. NCCL adds the rank, and the compute capability from the driver."""
    aliases = snapshot.topology.by_name[address].aliases
    if not (found := next(filter(None, map(_GPU.fullmatch, aliases)), None)):
        return
    gpu = _Element("gpu", {"dev": int(found[1])})
    for (kind, other), number in sorted(joined.get(address, Counter[tuple[str, str]]()).items()):
        if target := _target(snapshot, other):
            gpu.below.append(_Element(kind, {"target": target[0], "count": number, "tclass": target[1]}))
    c2c = [ln for ln in snapshot.topology.links if ln.kind == "c2c" and ln.a == address and ln.trained != 0]
    rate = min((link.rated for link in c2c if link.rated is not None), default=None)
    if rate is not None:
        gpu.below.append(_Element("c2c", {"bw": round(rate / 1e6), "count": len(c2c)}))  # bw: of one link, in MB/s
    yield gpu


def _target(snapshot: Snapshot, name: str) -> tuple[str, str | None] | None:
    """Address and class of the other end of a link; None if it has no address."""
    if name == FABRIC:
        return _HIDDEN, _hexadecimal(_SWITCH, 6)
    if function := snapshot.of(Pci).get(name):
        return name, _hexadecimal(function.pci_class, 6)
    return (_HIDDEN, _hexadecimal(_PROCESSOR, 6)) if name in snapshot.of(Numa) else None


def _nic(snapshot: Snapshot, address: str) -> Iterator[_Element]:
    """The ports of RDMA devices, without numbers (dev): NCCL assigns them, and uses a port only if it finds it."""
    nets: list[_Element] = []
    for adapter in snapshot.of(Rdma).values():
        if adapter.address != address or not _NAME.fullmatch(adapter.key):
            continue
        ports = [port for port in snapshot.of(Port).values() if port.device == adapter.key]
        nets += [_Element("net", {"name": adapter.key, **_port(port)}) for port in ports]
        nets += [_Element("net", {"name": adapter.key})] if not ports else []
    if nets:
        yield _Element("nic", {}, nets)


def _port(port: Port) -> dict[str, object]:
    """Port number and rate in Mb/s. A port that is down has no rate: the kernel shows its maximum then."""
    known = port.rate is not None and port.state in (None, "ACTIVE")
    return {"speed": round((port.rate or 0.0) * 8 / 1e6) if known else None, "port": port.key.rpartition("/")[2]}


def _size(element: _Element) -> int:
    return 1 + sum(map(_size, element.below))


def _lines(element: _Element, depth: int) -> Iterator[str]:
    """The lines of an element. There is no blank before "/>": NCCL would read it as one more attribute."""
    attributes = "".join(
        f" {name}={quoteattr(str(value))}" for name, value in element.attributes.items() if value is not None
    )
    begin = f"{'  ' * depth}<{element.tag}{attributes}"
    if not element.below:
        yield f"{begin}/>"
        return
    yield f"{begin}>"
    for below in element.below:
        yield from _lines(below, depth + 1)
    yield f"{'  ' * depth}</{element.tag}>"
