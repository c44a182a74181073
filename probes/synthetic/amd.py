"""AMD GPUs of a synthetic node in the topology of their compute driver: sys/class/kfd/kfd/topology.

Files as in drivers/gpu/drm/amd/amdkfd/kfd_topology.c: processors are also nodes and come first.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...models.catalog.gpus import products
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

_NODES = "sys/class/kfd/kfd/topology/nodes"
_XGMI, _ONE_HOP = 11, 15  # CRAT_IOLINK_TYPE_XGMI; the weight of a direct link


def write_kfd(tree: TreeWriter, node: Node, functions: Iterable[Function]) -> None:
    """Write a node for each GPU bound to the driver, with a link to each other GPU, and its memory size."""
    gpus = [function for function in functions if function.model.kind == "gpu" and _driver(function) == "amdgpu"]
    processors = node.cpu.sockets * node.cpu.numa_nodes if gpus else 0
    for number in range(processors):
        tree.files(f"{_NODES}/{number}", gpu_id=0, properties="simd_count 0\nlocation_id 0\ndomain 0")
    for number, gpu in enumerate(gpus, processors):
        product = next((product for product in products() if gpu.model.id in product.ids), None)
        tree.files(f"{_NODES}/{number}", gpu_id=20_000 + number, properties=f"simd_count 1216\n{_location(gpu)}")
        if product and product.memory:
            tree.files(gpu.folder, mem_info_vram_total=product.memory, product_name=product.called[0])
        if product and product.link_kind == "xgmi":
            others = [other for other in range(processors, processors + len(gpus)) if other != number]
            for place, other in enumerate(others):
                tree.put(f"{_NODES}/{number}/io_links/{place}/properties", _link(number, other, product.link_rate))


def _driver(function: Function) -> str:
    return function.model.driver if function.change.driver is None else function.change.driver


def _location(gpu: Function) -> str:
    domain, bus, rest = gpu.address.split(":")
    slot, _, number = rest.partition(".")
    return f"location_id {int(bus, 16) << 8 | int(slot, 16) << 3 | int(number)}\ndomain {int(domain, 16)}"


def _link(number: int, other: int, rate: float | None) -> str:
    """Return a link's properties. The rates, in MB/s, are those of one link and of all links to this peer."""
    megabytes = int((rate or 0) / 1e6)
    return (
        f"type {_XGMI}\nnode_from {number}\nnode_to {other}\nweight {_ONE_HOP}\n"
        f"min_bandwidth {megabytes}\nmax_bandwidth {megabytes}"
    )
