"""All kinds of fact by name: what a line of said_lines.py may hold."""

from __future__ import annotations

from collections.abc import Mapping

from .facts import (
    Array,
    Disk,
    Event,
    HostBridge,
    Mount,
    Net,
    Node,
    Numa,
    Nvme,
    Package,
    Pci,
    Port,
    Rdma,
    Service,
    Setting,
)  # fmt: skip
from .gpu_facts import Driver, Gpu, GpuLink, GpuPair
from .said import Fact

KINDS: Mapping[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        Node, Package, Numa, HostBridge, Pci, Driver, Gpu, GpuLink, GpuPair, Net, Rdma, Port, Nvme, Disk, Array, Mount,
        Setting, Service, Event,
    )
}  # fmt: skip
