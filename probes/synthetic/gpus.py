"""GPUs of a synthetic node as their driver reports them: healthy and idle, except for the described changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ...models.catalog.gpus import Product, products
from ...models.facts.gpu import Gpu
from ..parsing.parsers import cpu_list, known, pcie_speed, pcie_width
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

T = TypeVar("T")

C2C_RATE = 44.712e9  # bytes per second of one link (`nvidia-smi c2c -s` of a GH200; NCCL's topology of a GB300)
_CLOCK_AT_REST, _MEMORY_CLOCK_AT_REST = 345e6, 405e6  # nvidia-smi -q of an H100; of an A10G in P8
_OF_FABRIC = ("fabric_status", "fabric_clique", "fabric_cluster")
_FIELDS = frozenset(Gpu.__struct_fields__) - {"key", "cites"}


class Listed(Struct, frozen=True, dict=True):
    """A GPU that the driver shows. `ends` are the remote ends of its NVLinks; None for a hidden switch."""

    key: str
    function: Function
    product: Product | None
    ends: tuple[Function | None, ...]
    active: tuple[bool, ...]

    @property
    def failure(self) -> str:
        """Why the GPU cannot be used; "" for a usable GPU."""
        return self.function.change.failure or ("GPU is lost" if self.function.change.lost else "")

    @property
    def c2c_links(self) -> int:
        """The number of links to its Grace processor."""
        return round((self.product and self.product.c2c_rate or 0) / C2C_RATE)


def driven(function: Function) -> bool:
    """Whether the function is a GPU bound to NVIDIA's driver."""
    driver = function.model.driver if function.change.driver is None else function.change.driver
    return function.model.kind == "gpu" and function.model.id.startswith("10de:") and driver == "nvidia"


def listed(functions: Iterable[Function]) -> list[Listed]:
    """Return the GPUs that the driver shows, with its numbering. Raises ValueError for a missing link or peer."""
    functions = list(functions)
    shown = [function for function in functions if driven(function) and not function.change.unlisted]
    switches = [function for function in functions if function.model.kind == "nvswitch"]
    peers = _peers(shown)
    return [_listed(f"gpu{number}", gpu, peers[gpu], switches) for number, gpu in enumerate(shown)]


def _listed(key: str, function: Function, peers: list[Function], switches: list[Function]) -> Listed:
    product = next((product for product in products() if function.model.id in product.ids), None)
    links = range(product.links if product and product.link_kind == "nvlink" else 0)
    if unknown := set(function.change.inactive) - set(links):
        raise ValueError(f"{function.address}: has no NVLinks {', '.join(map(str, sorted(unknown)))}")
    connected = bool(peers) or (product is not None and (product.fabric or bool(switches) and not product.bridged))
    remote = peers or switches
    return Listed(
        key,
        function,
        product,
        ends=tuple(remote[number % len(remote)] if remote else None for number in links),
        active=tuple(connected and number not in function.change.inactive for number in links),
    )


def _peers(shown: list[Function]) -> Mapping[Function, list[Function]]:
    """Return the GPUs at the remote ends of each GPU's bridges, in order."""
    by_name = {name: function for function in shown for name in (function.address, *function.names)}
    pairs = {(function, peer) for function in shown for peer in function.change.peers}
    if unknown := {peer for _, peer in pairs} - by_name.keys():
        raise ValueError(f"peers: no GPU that the driver shows is called {', '.join(sorted(unknown))}")
    connected = {(function, by_name[peer]) for function, peer in pairs}
    return {one: [other for other in shown if {(one, other), (other, one)} & connected] for one in shown}


def fact(gpu: Listed, node: Node, tree: TreeWriter) -> Gpu:
    """Return all fields of a GPU. Raises ValueError for a change with an unknown field or an invalid value."""
    healthy = {
        **_identity(gpu, node),
        **_place(gpu.function, tree),
        **_pcie(gpu.function, tree),
        **_clocks(gpu),
        **_memory(gpu),
        **_links(gpu),
        **_mode(gpu),
    }
    fields = {**healthy, **node.gpu.every, **gpu.function.change.gpu}
    if unknown := {*fields, *node.gpu.unsaid} - _FIELDS:
        raise ValueError(f"gpu: a GPU has no field {', '.join(sorted(unknown))}")
    if fields.get("fabric_state") != "completed":  # before completion the driver reports no other field of the fabric
        fields = {name: value for name, value in fields.items() if name not in _OF_FABRIC}
    supported = {name: value for name, value in fields.items() if name not in node.gpu.unsaid}
    try:
        return msgspec.convert({"key": gpu.key, **supported}, Gpu)
    except msgspec.ValidationError as wrong:
        raise ValueError(f"gpu: {wrong}") from None


def _identity(gpu: Listed, node: Node) -> Mapping[str, Any]:
    model, product = gpu.function.model, gpu.product
    number = int(gpu.function.names[0].removeprefix("gpu")) + 1  # counts also GPUs that the driver does not list
    return {
        "name": product.called[0] if product and product.called else model.name,
        "uuid": f"GPU-00000000-0000-4000-8000-{number:012x}",
        "address": gpu.function.address,
        "board_part": model.part or None,
        "module_id": number if product and product.links and not product.bridged else None,
        "vbios": model.vbios or None,
        "recovery": "none",
        "virtualization": "passthrough" if node.virtual else "none",
    }


def _place(function: Function, tree: TreeWriter) -> Mapping[str, Any]:
    numa = _attribute(tree, f"{function.folder}/numa_node", known)
    return {"numa": numa, "cpus": _attribute(tree, f"sys/devices/system/node/node{numa}/cpulist", cpu_list)}


def _pcie(function: Function, tree: TreeWriter) -> Mapping[str, Any]:
    """Return the PCIe fields from sysfs. An emulated port of a hypervisor is not the GPU's real port."""
    ends = [function] if function.port is None or function.port.model.emulated else [function, function.port]
    speeds = [_attribute(tree, f"{end.folder}/max_link_speed", pcie_speed) for end in ends]
    widths = [_attribute(tree, f"{end.folder}/max_link_width", pcie_width) for end in ends]
    return {
        "pcie_speed": _attribute(tree, f"{function.folder}/current_link_speed", pcie_speed),
        "pcie_width": _attribute(tree, f"{function.folder}/current_link_width", pcie_width),
        "pcie_max_speed": min(filter(None, speeds), default=None),
        "pcie_max_width": min(filter(None, widths), default=None),
        "pcie_own_max_speed": speeds[0],
    }


def _clocks(gpu: Listed) -> Mapping[str, Any]:
    model = gpu.function.model
    highest, memory = _hertz(model.clock), _hertz(model.memory_clock)
    chosen = _hertz(model.default_clock) or highest if model.ecc else None  # GeForce has no application clocks
    return {
        "performance_state": model.rests,
        "clock": highest and _CLOCK_AT_REST,
        "clock_max": highest,
        "memory_clock": memory and (_MEMORY_CLOCK_AT_REST if model.rests else memory),
        "memory_clock_max": memory,
        "application_clock": chosen,
        "application_clock_default": chosen,
        "clock_reasons": ("idle",),
        "power": model.power and model.power / 10,
        "power_limit": model.power,
        "power_limit_default": model.power,
        "temperature": 34.0,
    }


def _hertz(megahertz: float | None) -> float | None:
    return None if megahertz is None else megahertz * 1e6


def _memory(gpu: Listed) -> Mapping[str, Any]:
    """Return the memory fields. Row remapping and the SRAM threshold exist since Ampere, the first with PCIe 4."""
    model, window = gpu.function.model, gpu.function.change.bar1
    counts = ("ecc_corrected", "ecc_uncorrected", "ecc_corrected_lifetime", "ecc_uncorrected_lifetime")
    rows: dict[str, Any] = {
        "remapped_correctable": 0,
        "remapped_uncorrectable": 0,
        "remap_pending": False,
        "remap_failed": False,
        "sram_threshold": False,
    }
    return {
        "memory": gpu.product and gpu.product.memory,
        "memory_used": 1 << 20,
        "bar1": model.bar1 if window is None else window,
        **({"ecc": True, "ecc_pending": True, **dict.fromkeys(counts, 0)} if model.ecc else {}),
        **(rows if model.ecc and (model.speed or 0) >= 16 else {}),
    }


def _links(gpu: Listed) -> Mapping[str, Any]:
    """Return the fields of NVLinks, C2C and fabric. Hopper reports a missing fabric; older GPUs report nothing.

    The health mask has bits since Blackwell (nvidia-smi -q of an H100: N/A).
    """
    product, active = gpu.product, sum(gpu.active)
    version = product and product.link_version or 0
    fields: dict[str, Any] = {"nvlinks": active, "nvlinks_present": len(gpu.active)} if gpu.active else {}
    if product and active:
        fields["nvlink_rate"] = product.link_rate
    if gpu.c2c_links:
        fields |= {"c2c_links": gpu.c2c_links, "c2c_rate": C2C_RATE}
    if product and product.fabric and version >= 4:
        fields |= {"fabric_state": "completed", "fabric_status": "Success", "fabric_clique": 0}
    elif version >= 4:
        fields["fabric_state"] = "not supported"
    return fields | ({"fabric_faults": ()} if version >= 5 else {})


def _mode(gpu: Listed) -> Mapping[str, Any]:
    model = gpu.function.model
    mig = {"mig": False, "mig_instances": 0} if model.mig else {}
    return {"persistence": model.ecc, "compute_mode": "default", "processes": 0, **mig}


def _attribute(tree: TreeWriter, path: str, parse: Callable[[str], T]) -> T | None:
    """Return the parsed sysfs file; None if it is missing or invalid."""
    entry = tree.entries.get(path)
    with suppress(ValueError):
        return parse(entry) if isinstance(entry, str) else None
    return None
