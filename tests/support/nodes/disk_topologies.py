"""Nodes with disks for tests of plans."""

from __future__ import annotations

from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.report import Report

DISKS, ARRAY = "disks", "array"
_CONTROLLERS = (
    ("0000:01:00.0", "nvme", "nvme0n1", "SAMSUNG MZWLO3T8HCLS"),
    ("0000:02:00.0", "nvme", "nvme1n1", "Amazon EC2 NVMe Instance Storage"),
    ("0000:03:00.0", "nvme", "nvme2n1", "Amazon Elastic Block Store"),
    ("0000:04:00.0", "storage", "vda", ""),
)


def report_on(which: str) -> Report:
    """Two local disks, a network disk and a hypervisor's disk; or an array of the local ones."""
    controllers = _CONTROLLERS[:2] if which == ARRAY else _CONTROLLERS
    gpu = Device("0000:05:00.0", "gpu", aliases=("gpu0",))
    devices = [Device("pci0000:00", "host-bridge"), gpu]
    links = [Link("root>gpu", "pci0000:00", gpu.id, "pcie")] if which == DISKS else []
    for address, kind, disk, model in controllers:
        devices += [Device(address, kind), Device(disk, "disk", model), Device(f"{disk}p1", "partition")]
        links += [
            Link(f"pci0000:00>{address}", "pci0000:00", address, "pcie"),
            Link(f"{address}>{disk}", address, disk, "disk"),
            Link(f"{disk}>{disk}p1", disk, f"{disk}p1", "disk"),
        ]
    if which == ARRAY:
        devices.append(Device("md0", "array", "raid0"))
        links += [Link(f"{disk}>md0", f"{disk}p1", "md0", "member") for _, _, disk, _ in controllers]
    return Report(
        node=None,
        taken_at=None,
        source="live",
        context="host",
        profile=None,
        verdict="unknown",
        topology=Topology(tuple(devices), tuple(links)),
    )
