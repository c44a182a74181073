"""AMD GPUs and their xGMI links from the compute driver's topology, sys/class/kfd/kfd/topology.

Sources: drivers/gpu/drm/amd/amdkfd/kfd_topology.c (files), kfd_crat.c and amdgpu_xgmi.c (links, rates); the files of a
GPU's PCI function are those of amdgpu_vram_mgr.c and amdgpu_fru_eeprom.c. None needs root; of GPUs that the device
cgroup of this process hides, they answer EPERM.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import EBADMSG, EPERM

from ...models.facts.gpu import Gpu, GpuLink
from ...models.facts.records import Evidence, NotChecked, Record
from ...models.facts.units import BytesPerSecond, from_gigabytes
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, known, word
from ..sysfs.fact_reader import FactReader

_NODES = "sys/class/kfd/kfd/topology/nodes"
_PROCESSES = "sys/class/kfd/kfd/proc"  # a folder each (kfd_process.c)
_FUNCTIONS = "sys/bus/pci/devices"
_NVIDIA = "sys/bus/pci/drivers/nvidia"
_PROPERTY = re.compile(r"^([a-z_0-9]{1,40}) ([0-9]{1,20})$", re.MULTILINE)
_XGMI = 11  # CRAT_IOLINK_TYPE_XGMI; 2 is PCI Express
_ONE_HOP = 15  # weight of xGMI for each hop
_MOST_LINKS = 32  # between two GPUs; real ones have four


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of the topology that is a GPU."""

    number: int
    gpu: str
    address: str


def read_kfd(host: Host) -> Iterator[Record]:
    """A `Gpu` for each AMD GPU, a `GpuLink` for each of its xGMI links.

    They are numbered as HIP numbers them, by the nodes of the topology: "gpu0"; beside NVIDIA's, which have these
    names, "amd0". Partitions of one GPU are nodes too, and share its links: the first stands for the GPU.
    """
    try:
        numbers = sorted(int(name) for name in host.list(_NODES) if re.fullmatch("[0-9]{1,4}", name))
        prefix = "amd" if numbers and host.list(_NVIDIA) else "gpu"
    except Unreadable as refusal:
        yield refusal.missed("Gpu", "node", refusal.path)
        return
    nodes: dict[int, _Node] = {}
    first: dict[str, _Node] = {}
    for number in numbers:
        if address := (yield from _address(host, number)):
            node = first.setdefault(address, _Node(number, f"{prefix}{len(nodes)}", address))
            nodes[number] = node
    for node in first.values():
        yield from _gpu(host, node)
        yield from _links(host, node, nodes)


def _address(host: Host, number: int) -> Generator[NotChecked, None, str | None]:
    """The PCI address of the GPU that a node is; None for a processor, and for a GPU that would not say.

    location_id is its bus, device and function. Some kernels put the number of a partition into the function; in all,
    the GPU itself is function 0 where there is no other.
    """
    try:
        if host.read(f"{_NODES}/{number}/gpu_id") in (None, "0"):
            return None
        found = _properties(host, f"{_NODES}/{number}", ("location_id", "domain"))
    except Unreadable as refusal:
        how = "give this process the GPU, or run outside of its container or job" if refusal.code == EPERM else None
        yield NotChecked(
            what="Gpu",
            subject="node",
            reason=refusal.reason,
            path=refusal.path,
            detail=refusal.why,
            how=how or refusal.how,
        )
        return None
    place = f"{found['domain']:04x}:{found['location_id'] >> 8 & 0xFF:02x}:{found['location_id'] >> 3 & 0x1F:02x}"
    address = f"{place}.{found['location_id'] & 7}"
    with suppress(Unreadable):
        return address if host.resolve(f"{_FUNCTIONS}/{address}") else f"{place}.0"
    return address


def _gpu(host: Host, node: _Node) -> Iterator[Record]:
    reading = FactReader(host, Gpu, node.gpu, f"{_FUNCTIONS}/{node.address}")
    reading.set(address=node.address)
    reading.take("name", "product_name", word)
    reading.take("memory", "mem_info_vram_total", count)
    reading.take("numa", "numa_node", known)
    yield from reading.records()


def _links(host: Host, node: _Node, nodes: Mapping[int, _Node]) -> Iterator[Record]:
    """The xGMI links from a GPU. Partitions list each link again: one of each other end is enough."""
    folder, number, told = f"{_NODES}/{node.number}/io_links", 0, {node.gpu}
    try:
        names = sorted(int(name) for name in host.list(folder) if re.fullmatch("[0-9]{1,4}", name))
        for name in names:
            path = f"{folder}/{name}"
            found = _properties(host, path, ("type", "node_to", "weight", "min_bandwidth", "max_bandwidth"))
            peer = nodes.get(found["node_to"])
            other = peer.gpu if peer else "cpu"
            if found["type"] != _XGMI or other in told:
                continue
            told.add(other)
            links, rate = _parallel(found)
            for _ in range(links):
                yield GpuLink(
                    key=f"{node.gpu}/xgmi{number}",
                    gpu=node.gpu,
                    kind="xgmi",
                    active=True,
                    speed=rate,
                    remote=peer.address if peer else None,
                    remote_kind="gpu" if peer else "cpu",
                    cites={"speed": Evidence(f"{path}/properties", f"max_bandwidth {found['max_bandwidth']}")},
                )
                number += 1
    except Unreadable as refusal:
        yield NotChecked(
            what="GpuLink",
            subject=node.gpu,
            reason=refusal.reason,
            path=refusal.path,
            detail=refusal.why,
            how=refusal.how,
        )


def _parallel(found: Mapping[str, int]) -> tuple[int, BytesPerSecond | None]:
    """How many links join two GPUs directly, and what each carries.

    min_bandwidth is of one link, max_bandwidth of all of them, in MB/s; that is 0 for peers that are reached through
    others. Before MI200 the kernel gives neither, and the weight tells how many hops there are.
    """
    one, all_of_them = found["min_bandwidth"], found["max_bandwidth"]
    if not one or one > all_of_them:
        direct = found["weight"] <= _ONE_HOP if not one else all_of_them > 0
        return int(direct), from_gigabytes(all_of_them / 1000) if all_of_them else None
    return min(all_of_them // one, _MOST_LINKS), from_gigabytes(one / 1000)


def processes(host: Host) -> list[str]:
    """Numbers of the processes that have opened AMD's GPUs to compute. Raises Unreadable."""
    return host.list(_PROCESSES)


def _properties(host: Host, folder: str, wanted: Iterable[str]) -> Mapping[str, int]:
    """The numbers of a properties file, "name 42" a line. Raises Unreadable, also where a wanted one is missing."""
    path = f"{folder}/properties"
    found = {name: int(number) for name, number in _PROPERTY.findall(host.read(path) or "")}
    if missing := [name for name in wanted if name not in found]:
        raise Unreadable(path, EBADMSG, f"has no {', '.join(missing)}")
    return found
