"""All kinds of fact by name: what a line of said_lines.py may hold."""

from __future__ import annotations

from collections.abc import Mapping

from .facts import (
    Array,
    Disk,
    Event,
    Gid,
    HostBridge,
    Mount,
    Nccl,
    NcclFailure,
    Net,
    Node,
    NodePair,
    Numa,
    Nvme,
    Package,
    Pci,
    Port,
    Rdma,
    Serial,
    Service,
    Setting,
    Transport,
)
from .gpu_facts import Driver, Gpu, GpuLink, GpuPair
from .said import Fact

KINDS: Mapping[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        Node,
        Package,
        Numa,
        HostBridge,
        Pci,
        Driver,
        Gpu,
        GpuLink,
        GpuPair,
        Net,
        Rdma,
        Port,
        Gid,
        Nvme,
        Disk,
        Array,
        Mount,
        Setting,
        Serial,
        Service,
        Event,
        Nccl,
        Transport,
        NcclFailure,
        NodePair,
    )
}
