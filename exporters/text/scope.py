"""The scope of a verdict over dumps, which show a part of a machine."""

from __future__ import annotations

from ...models.catalog import codes
from ...models.report import Report
from .vocabulary import device_counts

_AREAS = {  # by the beginning of a code
    "PCIe links": ("pcie-", "iommu-"),
    "GPU state": ("gpu-", "driver-"),
    "NVLink state": ("nvlink-", "nvswitch-", "fabric-", "imex-", "p2p-"),
    "NIC ports": ("nic-", "gdr-"),
    "CPUs and memory": ("cpu-", "numa-", "host-memory"),
    "storage": ("storage-", "gds-"),
    "settings of jobs": ("memlock-", "shm-", "nccl-"),
    "places of devices": ("device-",),
    "rates": ("bandwidth-", "node-slow"),
}


def scope_of(report: Report) -> str:
    """The areas in which a fault would have been found, and the devices: "NVLink state of 8 GPUs"."""
    found = [code for code, judged in report.checks.items() if judged and set(codes()[code].severity) != {"info"}]
    areas = dict.fromkeys(area for area, prefixes in _AREAS.items() for code in found if code.startswith(prefixes))
    devices = device_counts([device.kind for device in report.topology.devices])
    return ", ".join(areas) + (f" of {', '.join(devices)}" if devices else "")
