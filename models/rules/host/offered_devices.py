"""Devices that a Kubernetes node has and does not offer, because their plugin calls them unhealthy."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.health import OfferedDevices
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_NETWORK = ("efa", "rdma", "nic", "sriov", "hca", "ib")


def _is_network(name: str) -> bool:
    return any(word in name for word in _NETWORK)


def unhealthy(snapshot: Snapshot, devices: OfferedDevices) -> Iterator[Finding]:
    """Fewer devices are healthy than registered."""
    have, want = devices.allocatable or 0, devices.capacity or 0
    if have >= want:
        return
    kind = "NICs" if _is_network(devices.key) else "GPUs"
    yield Finding(
        code="nic-missing" if _is_network(devices.key) else "gpu-missing",
        severity="warning",
        subject="node",
        message=f"{have} of {want} {kind} ({devices.key}) can be allocated: their plugin calls {want - have} unhealthy",
        expected=want,
        observed=have,
        unit="devices",
        basis="capability",
        expected_source="the capacity of the node",
        cause="the device plugin saw a critical Xid, or the device does not answer",
        evidence=cited(devices, "capacity", "allocatable"),
        remedy="Read the log of the device plugin and dmesg: find the Xid. Then reset the device or restart the node.",
    )


def is_gpu(snapshot: Snapshot, devices: OfferedDevices) -> bool:
    """Select accelerators."""
    return not _is_network(devices.key)


def is_nic(snapshot: Snapshot, devices: OfferedDevices) -> bool:
    """Select NICs."""
    return _is_network(devices.key)


_NEEDS = ("capacity", "allocatable")
RULES = (
    Rule("gpu-missing", OfferedDevices, _NEEDS, unhealthy, is_gpu),
    Rule("nic-missing", OfferedDevices, _NEEDS, unhealthy, is_nic),
)
