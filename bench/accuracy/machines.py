"""Topologies of any size, for code that must stay fast on the largest machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import TypeAlias

from linkgauge.models.facts.pcie_rates import rated, speed_of
from linkgauge.models.graph.topology import FABRIC, Device, Link, Topology

_Part: TypeAlias = Device | Link
_WIDTHS = {"gpu": 16, "nic": 16, "nvme": 4}  # lanes of PCIe 5


def nvlink_domain(gpus: int) -> Topology:
    """Trays of four GPUs (the last may have fewer) joined only by NVLink, as in a rack of 72.

    Each tray has two processors with memory. Each GPU has NVLink-C2C, PCIe, a NIC and a disk.
    """
    parts: list[_Part] = [Device(FABRIC, "fabric")]
    for number in range(gpus):
        socket = number // 2
        if number % 2 == 0:
            parts += _processor(f"package{socket}", [f"numa{socket}"])
        if number % 4 == 2:
            parts.append(Link(f"tray{number // 4}", f"package{socket - 1}", f"package{socket}", "interconnect"))
        for kind in _WIDTHS:
            parts += _root(f"numa{socket}", f"{kind}{number}")
            parts += _device(f"{kind}{number}/port", f"{kind}{number}", kind)
        parts += _gpu_links(f"gpu{number}", 50e9, "nvlink5")
        parts.append(Link(f"gpu{number}/c2c0", f"gpu{number}", f"numa{socket}", "c2c", 450e9, grade="c2c5"))
    return _joined(parts)


def pci_node(functions: int) -> Topology:
    """Two sockets with at least this number of PCI functions: switches with 14 devices each.

    At most eight of them are GPUs, each with a NIC. The others are disks.
    """
    numas = [f"numa{n}" for n in range(8)]
    parts: list[_Part] = [Device(FABRIC, "fabric"), Link("socket", "package0", "package1", "interconnect")]
    parts += [*_processor("package0", numas[:4]), *_processor("package1", numas[4:])]
    kinds = chain(["gpu", "nic", *["nvme"] * 12] * 8, repeat("nvme"))
    for number in range(-(-functions // 30)):
        switch = f"switch{number}"
        parts += [*_root(numas[number % 8], switch), Device(switch, "upstream-port")]
        parts.append(_pcie(f"{switch}/port", switch, 16))
        for place in range(14):
            below = f"{switch}.{place}"
            kind = next(kinds)
            parts += [Device(below, "downstream-port"), Link(f"{switch}>{below}", switch, below, "internal")]
            parts += _device(below, f"{kind}{number}.{place}", kind)
            parts += _gpu_links(f"{kind}{number}.{place}", 25e9, "nvlink4") if kind == "gpu" else ()
    return _joined(parts)


def _processor(name: str, numas: Iterable[str]) -> Iterator[_Part]:
    yield Device(name, "package")
    for numa in numas:
        yield from (Device(numa, "numa"), Link(f"{name}>{numa}", name, numa, "internal"))
        yield Link(f"{numa}/memory", numa, numa, "memory", 76.8e9, grade="ddr5")


def _root(numa: str, name: str) -> Iterator[_Part]:
    """A host bridge with a root port."""
    yield from (Device(f"{name}/root", "host-bridge"), Device(f"{name}/port", "root-port"))
    yield Link(f"{numa}>{name}", numa, f"{name}/root", "internal")
    yield Link(f"{name}/root>", f"{name}/root", f"{name}/port", "internal")


def _device(port: str, name: str, kind: str) -> Iterator[_Part]:
    yield from (Device(name, kind), _pcie(port, name, _WIDTHS[kind]))


def _pcie(port: str, name: str, width: int) -> Link:
    return Link(f"{port}>{name}", port, name, "pcie", rated(speed_of(5), width), grade=f"pcie5x{width}")


def _gpu_links(gpu: str, rate: float, grade: str) -> Iterator[_Part]:
    """Links to the fabric and to the memory of the GPU."""
    yield from (Link(f"{gpu}/nvlink{n}", gpu, FABRIC, "nvlink", rate, grade=grade) for n in range(18))
    yield Link(f"{gpu}/memory", gpu, gpu, "memory", 8000e9 if grade == "nvlink5" else 3350e9, grade="hbm")


def _joined(parts: Iterable[_Part]) -> Topology:
    everything = tuple(parts)
    devices = tuple(part for part in everything if isinstance(part, Device))
    return Topology(devices, tuple(part for part in everything if isinstance(part, Link)))
