"""AMD GPUs and their xGMI links from the compute driver's topology, sys/class/kfd/kfd/topology.

Sources: drivers/gpu/drm/amd/amdkfd/kfd_topology.c (files), kfd_crat.c and amdgpu_xgmi.c (links, rates);
amdgpu_vram_mgr.c and amdgpu_fru_eeprom.c (files of the PCI function). No file needs root. If the device cgroup of
this process hides a GPU, the kernel returns EPERM for its files.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from errno import EBADMSG, EPERM

from msgspec import Struct

from ...models.facts.gpu import Gpu, GpuLink
from ...models.facts.records import Evidence, NotChecked, Record
from ...models.facts.units import BytesPerSecond, from_gigabytes
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, known, word
from ..sysfs.fact_reader import FactReader

_NODES = "sys/class/kfd/kfd/topology/nodes"
_PROCESSES = "sys/class/kfd/kfd/proc"  # one folder for each process (kfd_process.c)
_FUNCTIONS = "sys/bus/pci/devices"
_NVIDIA = "sys/bus/pci/drivers/nvidia"
_PROPERTY = re.compile(r"^([a-z_0-9]{1,40}) ([0-9]{1,20})$", re.MULTILINE)
_XGMI = 11  # CRAT_IOLINK_TYPE_XGMI; 2 is PCI Express
_ONE_HOP = 15  # xGMI weight of each hop
_MOST_LINKS = 32  # between two GPUs; products have at most four


class _Node(Struct, frozen=True):
    """A topology node that is a GPU."""

    number: int
    gpu: str
    address: str


def read_kfd(host: Host) -> Iterator[Record]:
    """Yield a `Gpu` for each AMD GPU and a `GpuLink` for each of its xGMI links.

    GPUs are numbered by topology node, like in HIP: "gpu0". If NVIDIA GPUs use these names, "amd0". Partitions of a
    GPU are also topology nodes and share its links; the first partition represents the GPU.
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
    """Return the PCI address of a GPU node; None for a processor and for an unreadable GPU.

    location_id contains bus, device and function. Some kernels put the partition number into the function. If no PCI
    function exists at that address, the GPU is function 0.
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
    prefix = f"{found['domain']:04x}:{found['location_id'] >> 8 & 0xFF:02x}:{found['location_id'] >> 3 & 0x1F:02x}"
    address = f"{prefix}.{found['location_id'] & 7}"
    with suppress(Unreadable):
        return address if host.resolve(f"{_FUNCTIONS}/{address}") else f"{prefix}.0"
    return address


def _gpu(host: Host, node: _Node) -> Iterator[Record]:
    reading = FactReader(host, Gpu, node.gpu, f"{_FUNCTIONS}/{node.address}")
    reading.set(address=node.address)
    reading.take("name", "product_name", word)
    reading.take("memory", "mem_info_vram_total", count)
    reading.take("numa", "numa_node", known)
    yield from reading.records()


def _links(host: Host, node: _Node, nodes: Mapping[int, _Node]) -> Iterator[Record]:
    """Yield the xGMI links of a GPU. Partitions repeat each link, so this reads one entry for each remote GPU."""
    folder, number, peers_seen = f"{_NODES}/{node.number}/io_links", 0, {node.gpu}
    try:
        names = sorted(int(name) for name in host.list(folder) if re.fullmatch("[0-9]{1,4}", name))
        for name in names:
            path = f"{folder}/{name}"
            found = _properties(host, path, ("type", "node_to", "weight", "min_bandwidth", "max_bandwidth"))
            peer = nodes.get(found["node_to"])
            other = peer.gpu if peer else "cpu"
            if found["type"] != _XGMI or other in peers_seen:
                continue
            peers_seen.add(other)
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
        yield refusal.missed("GpuLink", node.gpu, refusal.path)


def _parallel(found: Mapping[str, int]) -> tuple[int, BytesPerSecond | None]:
    """Return the number of direct links between two GPUs and the rate of each link.

    min_bandwidth is the rate of one link and max_bandwidth the rate of all links, both in MB/s. max_bandwidth is 0 for
    peers without a direct link. Before MI200 both are 0; the weight then gives the number of hops.
    """
    one, all_of_them = found["min_bandwidth"], found["max_bandwidth"]
    if not one or one > all_of_them:
        direct = found["weight"] <= _ONE_HOP if not one else all_of_them > 0
        return int(direct), from_gigabytes(all_of_them / 1000) if all_of_them else None
    return min(all_of_them // one, _MOST_LINKS), from_gigabytes(one / 1000)


def processes(host: Host) -> list[str]:
    """Return the IDs of processes that use AMD GPUs for compute. Raises Unreadable."""
    return host.list(_PROCESSES)


def _properties(host: Host, folder: str, wanted: Iterable[str]) -> Mapping[str, int]:
    """Return the numbers of a properties file with lines "name 42". Raises Unreadable if a wanted name is missing."""
    path = f"{folder}/properties"
    found = {name: int(number) for name, number in _PROPERTY.findall(host.read(path) or "")}
    if missing := [name for name in wanted if name not in found]:
        raise Unreadable(path, EBADMSG, f"has no {', '.join(missing)}")
    return found
