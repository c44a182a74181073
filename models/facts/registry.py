"""The registry of record kinds. Captures, reports and rules use these names, so no name changes with its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .bmc import BmcLink, BmcPart
from .gpu import Driver, Gpu, GpuLink, GpuPair
from .health import DiskHealth, OfferedDevices, Temperature
from .job_ranks import Rank
from .machine import (
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
from .network_paths import NicPath, NodePair, Optics
from .records import Fact, NotChecked, Observation, Run

KINDS: Mapping[str, type[Fact]] = {
    "Node": Node,
    "Package": Package,
    "Numa": Numa,
    "HostBridge": HostBridge,
    "Pci": Pci,
    "Driver": Driver,
    "Gpu": Gpu,
    "GpuLink": GpuLink,
    "GpuPair": GpuPair,
    "Net": Net,
    "Rdma": Rdma,
    "Port": Port,
    "NicPath": NicPath,
    "Gid": Gid,
    "Nvme": Nvme,
    "Optics": Optics,
    "Disk": Disk,
    "Array": Array,
    "Mount": Mount,
    "Setting": Setting,
    "Serial": Serial,
    "Service": Service,
    "Event": Event,
    "Nccl": Nccl,
    "Transport": Transport,
    "NcclFailure": NcclFailure,
    "NodePair": NodePair,
    "Rank": Rank,
    "BmcLink": BmcLink,
    "BmcPart": BmcPart,
    "Temperature": Temperature,
    "DiskHealth": DiskHealth,
    "OfferedDevices": OfferedDevices,
}
# All kinds that a line of JSON (jsonl.py) may contain.
RECORDS: Mapping[str, type[Any]] = {**KINDS, "Observation": Observation, "NotChecked": NotChecked, "Run": Run}
_NAMES: Mapping[type[Any], str] = {kind: name for name, kind in RECORDS.items()}


def kind_name(kind: type[Any]) -> str:
    """The public name of a record kind: "Gpu". KeyError: the kind is not in the registry."""
    return _NAMES[kind]
