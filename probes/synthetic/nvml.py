"""Results of the calls `nvml` and `nvml_wiring` on a synthetic node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from msgspec.structs import replace

from ...models.facts.gpu import Driver, Gpu, GpuLink, GpuPair
from ...models.facts.machine import Service
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ..gpu.nvml_traffic import NVLINK_DATA
from ..system.services import BINARY, FABRIC_MANAGER
from .gpus import C2C_RATE, Listed, driven, fact, listed
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

# Fields that are constant until a reset belong to `nvml_wiring`, not to `nvml`.
_CONSTANT: Mapping[str, Any] = dict.fromkeys(
    (
        "vbios",
        "board_part",
        "module_id",
        "virtualization",
        "pcie_own_max_speed",
        "clock_max",
        "memory_clock_max",
        "application_clock_default",
        "bar1",
        "cpus",
        "numa",
    )
)
# Bytes per second of one link in `nvidia-smi nvlink -s`, by NVLink generation: signal rates, not data rates.
_SIGNALS = {2: 25.781e9, 3: 25e9, 4: 26.562e9, 5: 53.125e9}
_NO_ERRORS = 15e-255  # the firmware's value for a bit error rate of zero
_SECONDS = ("clocks_sw_power", "clocks_sw_thermal", "clocks_hw_thermal", "clocks_hw_power_brake")
_ECC = ("ecc_corrected", "ecc_uncorrected")
_LINK_ERRORS = ("nvlink_replay", "nvlink_recovery", "nvlink_crc")
_LINK_5_ERRORS = ("nvlink_recovery", "nvlink_recovery_failed", "nvlink_symbol_errors", "nvlink_effective_errors")


def write_driver(tree: TreeWriter, node: Node, functions: Iterable[Function]) -> None:
    """Write the kernel module, if a GPU is bound to it, and the fabric manager, if it is installed."""
    if any(map(driven, functions)):
        tree.put("sys/module/nvidia/version", node.gpu.version)
        maker = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64"
        tree.put("proc/driver/nvidia/version", f"{maker}  {node.gpu.version}  Release Build")
    if FABRIC_MANAGER in node.services:
        tree.put(BINARY, "")


def manager(node: Node) -> Iterator[Service]:
    """Yield the version of the fabric manager."""
    version = node.gpu.manager or node.gpu.version
    cites = {"version": Evidence(f"/{BINARY}", f"Fabric Manager version is : {version}")}
    yield Service(key=FABRIC_MANAGER, version=version, cites=cites)


def state(tree: TreeWriter, node: Node, functions: Iterable[Function], at: float) -> Iterator[Record]:
    """Yield the results of `nvml`. Raises ValueError for a change that does not apply to a GPU."""
    gpus, driver = listed(functions), node.gpu
    if driver.error:
        yield Driver(key="nvidia", failure=driver.error)
        return
    if driver.missing:
        yield NotChecked(what="Gpu", subject="node", reason=Reason.NOT_INSTALLED, detail=driver.missing)
        return
    nvml = f"{driver.cuda.partition('.')[0]}.{driver.version}"
    yield Driver(key="nvidia", library=driver.version, nvml=nvml, cuda=driver.cuda, gpus=len(gpus))
    for gpu in gpus:
        if gpu.failure:
            yield Gpu(key=gpu.key, address=gpu.function.address, failure=gpu.failure)
            continue
        gpu_fact = fact(gpu, node, tree)
        yield replace(gpu_fact, **_CONSTANT)
        yield from _links(gpu)
        yield from _counters(gpu, gpu_fact, at)


def wiring(tree: TreeWriter, node: Node, functions: Iterable[Function]) -> Iterator[Record]:
    """Yield the results of `nvml_wiring`."""
    if why := node.gpu.error or node.gpu.missing:
        reason = Reason.DRIVER if node.gpu.error else Reason.NOT_INSTALLED
        yield NotChecked(what="GpuPair", subject="node", reason=reason, detail=why)
        return
    gpus = listed(functions)
    for gpu in gpus:
        if gpu.failure:
            for what in ("GpuLink.remote", "GpuPair"):
                yield NotChecked(what=what, subject=gpu.key, reason=Reason.LOST, detail=gpu.failure)
    gpus = [gpu for gpu in gpus if not gpu.failure]
    facts = {gpu.key: fact(gpu, node, tree) for gpu in gpus}
    for gpu in gpus:
        yield Gpu(key=gpu.key, **{name: getattr(facts[gpu.key], name) for name in _CONSTANT})
        yield from _remote_links(gpu)
    for a, b in combinations(gpus, 2):
        complete = {facts[gpu.key].fabric_state for gpu in (a, b)} <= {"completed", None}
        yield _pair(a, b, _bridged(a, b) or complete and _switched(a, b), node.gpu.p2p)


def _links(gpu: Listed) -> Iterator[GpuLink]:
    version = gpu.product.link_version if gpu.product else None
    for number, active in enumerate(gpu.active):
        speed = _SIGNALS.get(version or 0) if active else None
        yield GpuLink(
            key=f"{gpu.key}/nvlink{number}",
            gpu=gpu.key,
            kind="nvlink",
            active=active,
            version=version if active else None,
            speed=speed,
        )
    for number in range(gpu.c2c_links):
        yield GpuLink(
            key=f"{gpu.key}/c2c{number}", gpu=gpu.key, kind="c2c", active=True, speed=C2C_RATE, remote_kind="cpu"
        )


def _remote_links(gpu: Listed) -> Iterator[GpuLink]:
    """Yield the remote ends of NVLinks. In a guest, and since NVLink 5, switches have no address."""
    for number, (active, end) in enumerate(zip(gpu.active, gpu.ends, strict=True)):
        if active:
            kind = "gpu" if end and end.model.kind == "gpu" else "switch"
            remote = end.address if end else None
            yield GpuLink(key=f"{gpu.key}/nvlink{number}", remote=remote, remote_kind=kind)


def _bridged(a: Listed, b: Listed) -> bool:
    """Whether NVLinks connect two GPUs directly."""
    return b.function in _remote_ends(a)


def _switched(a: Listed, b: Listed) -> bool:
    """Whether NVLinks connect two GPUs through switches."""
    return any(end is None or end.model.kind != "gpu" for end in _remote_ends(a) & _remote_ends(b))


def _remote_ends(gpu: Listed) -> set[Function | None]:
    """Return the remote ends of the active NVLinks."""
    return {end for end, up in zip(gpu.ends, gpu.active, strict=True) if up}


def _pair(a: Listed, b: Listed, connected: bool, refused: str) -> GpuPair:
    able = connected or all(gpu.product is None or gpu.product.peers for gpu in (a, b))
    reach = refused or ("ok" if able else "chipset not supported")
    nvlink = refused or ("ok" if connected else "not supported")
    return GpuPair(
        key=f"{a.key}-{b.key}",
        a=a.key,
        b=b.key,
        read=reach,
        write=reach,
        nvlink=nvlink,
        atomics=nvlink,
        path=path(a.function, b.function),
    )


def path(a: Function, b: Function) -> str:
    """Return the nearest common ancestor, as nvmlDeviceGetTopologyCommonAncestor names it."""
    above_a, above_b = a.folder.split("/")[2:-1], b.folder.split("/")[2:-1]
    shared = sum(one == other for one, other in zip(above_a, above_b, strict=False))
    if shared == 0:  # different PCI roots
        return "NODE" if a.numa == b.numa else "SYS"
    if shared == 1:
        return "PHB"
    if above_a == above_b:
        return "INTERNAL" if a.address.rpartition(".")[0] == b.address.rpartition(".")[0] else "PIX"
    return "PIX" if len(above_a) == len(above_b) == shared + 1 else "PXB"


def _counters(gpu: Listed, gpu_fact: Gpu, at: float) -> Iterator[Observation]:
    """Yield all counters of a GPU, non-zero counters of its links, and their error rates since NVLink 5."""
    corrected = {name: count for name in _ECC if (count := getattr(gpu_fact, name)) is not None}
    changes = {**corrected, **gpu.function.change.counters}
    version = (gpu.product and gpu.product.link_version) or 0
    errors = (_LINK_5_ERRORS if version >= 5 else _LINK_ERRORS) if gpu.active else ()
    traffic = tuple(name for name in NVLINK_DATA if gpu.active and name in changes)
    seconds = _SECONDS if gpu_fact.clock_reasons is not None else ()
    known = (*(("pcie_replay",) if gpu_fact.pcie_width else ()), *corrected, *errors, *seconds, *traffic)
    if gpu_fact.processes is not None:
        yield _observed(gpu.key, "processes", "count", gpu_fact.processes, at)
    of_links = {f"nvlink{number}.{name}" for number in range(len(gpu.active)) for name in errors}
    if unknown := changes.keys() - {*known, *of_links}:
        raise ValueError(f"{gpu.function.address}: a GPU like this has no counter {', '.join(sorted(unknown))}")
    for name in known:
        total = changes.get(name, 0) + sum(changes.get(link, 0) for link in of_links if link.endswith(f".{name}"))
        unit = "seconds" if name in _SECONDS else "bytes" if name in traffic else "count"
        yield _observed(gpu.key, name, unit, total, at)
    for number, active in enumerate(gpu.active):
        link = f"nvlink{number}"
        for name in errors:
            if value := changes.get(f"{link}.{name}"):
                yield _observed(f"{gpu.key}/{link}", name, "count", value, at)
        if version >= 5 and active:
            yield _observed(f"{gpu.key}/{link}", "nvlink_effective_ber", "ratio", _NO_ERRORS, at)


def _observed(about: str, quantity: str, unit: str, value: float, at: float) -> Observation:
    evidence = Evidence("NVML", f"{quantity} {value:.15g}")
    return Observation(about=about, quantity=quantity, unit=unit, value=float(value), at=at, evidence=evidence)
