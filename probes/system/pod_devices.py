"""Pods that run on this machine with GPUs or RDMA devices.

The kubelet keeps two files (https://kubernetes.io/docs/reference/node/kubelet-files/): the devices of device plugins by
pod, and the claims of Dynamic Resource Allocation (DRA).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, TypeVar

import msgspec

from ..host.host import Host, Unreadable
from .job_cgroups import CGROUPS, AllocationsUnknown, populated

_KUBELET = "var/lib/kubelet"
# pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go and pkg/kubelet/cm/dra/state of Kubernetes
_PLUGINS = f"{_KUBELET}/device-plugins/kubelet_internal_checkpoint"
_CLAIMS = f"{_KUBELET}/dra_manager_state"
_POD_FOLDERS = f"{_KUBELET}/pods"  # a folder for each pod UID, from before container start until pod removal
_POD_CGROUPS = re.compile(r"(?:.+-)?kubepods(?:\.slice)?")
_CGROUP_ROOTS = re.compile(r"kubelet(?:\.slice)?")  # of kind and of --cgroup-root
_POD = re.compile(r"(?:.+-)?pod([0-9A-Za-z_-]+?)(?:\.slice)?")
_QUALITY = re.compile(r"(?:.+-)?(?:burstable|besteffort)(?:\.slice)?")
# Names of resources and of DRA drivers. The plugins of NVIDIA and AMD name products (nvidia.com/GH100_H100_SXM5) and
# MIG profiles, those for SR-IOV any names of NICs. dra.net is DRANET, vpc.amazonaws.com/efa is EFA.
_GPU_OR_RDMA = re.compile(
    r"(?:nvidia|amd|mellanox)\.com/.+|rdma/.+|dra\.net"
    r"|.*(?:gpu|rdma|roce|infiniband|mlx|mlnx|sriov|\befa\b|\bhca).*",
    re.IGNORECASE,
)
_GPU_ID = re.compile(r"(?:GPU|MIG)-[0-9a-f].*")  # NVIDIA's UUIDs, whatever the resource is called
_PCI_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_PCI_CLASSES = ("0x02", "0x03", "0x12")  # network, display, processing accelerator (pci.ids)
T = TypeVar("T")


class _Entry(msgspec.Struct, rename="pascal"):
    pod_uid: str = msgspec.field(default="", name="PodUID")
    resource_name: str = ""
    devices: dict[str, list[str] | None] | list[str] | None = msgspec.field(
        default=None, name="DeviceIDs"
    )  # by NUMA node


class _Data(msgspec.Struct, rename="pascal"):
    pod_device_entries: list[_Entry] | None = None


class _Checkpoint(msgspec.Struct, rename="pascal"):
    data: _Data


class _Claim(msgspec.Struct, rename="pascal"):
    claim_name: str = ""
    pod_uids: dict[str, Any] | None = msgspec.field(default=None, name="PodUIDs")
    driver_state: dict[str, Any] | None = None
    driver_name: str = ""  # before DriverState


class _Claims(msgspec.Struct):
    entries: list[_Claim] | None = msgspec.field(default=None, name="Entries")


class _ClaimFile(msgspec.Struct):
    """Kubernetes 1.32 wraps the claims in a string. Older releases write them without it."""

    data: str | None = msgspec.field(default=None, name="Data")
    entries: list[_Claim] | None = None


def pods_with_devices(host: Host, is_own: bool) -> dict[str, str]:
    """The resource or the DRA driver by pod UID. `is_own`: the caller is a pod itself. Raises AllocationsUnknown."""
    try:
        files = [(path, text) for path in (_PLUGINS, _CLAIMS) if (text := host.read(path)) is not None]
        if not files and not is_own and _has_pods(host) and not host.list(_KUBELET):
            raise AllocationsUnknown("pods run, but /var/lib/kubelet with their device allocations is not visible")
        found = {uid: name for path, text in files for uid, name in _allocated(host, path, text)}
        running = _running(host, found)
    except Unreadable as refusal:
        if is_own:
            return {}
        raise AllocationsUnknown(f"{refusal.path}: {refusal.why}") from None
    return {uid: name for uid, name in found.items() if uid in running}


def _allocated(host: Host, path: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the UIDs of pods with GPUs or RDMA devices in a file of the kubelet, and the resource or the DRA driver."""
    if path == _PLUGINS:
        for entry in _decoded(path, text, _Checkpoint).data.pod_device_entries or []:
            if _GPU_OR_RDMA.fullmatch(entry.resource_name) or _are_devices(host, entry):
                yield entry.pod_uid, entry.resource_name
        return
    file = _decoded(path, text, _ClaimFile)
    claims = file.entries if file.data is None else _decoded(path, file.data, _Claims).entries
    for claim in claims or []:
        for driver in claim.driver_state or (claim.driver_name,):
            if _GPU_OR_RDMA.fullmatch(driver):
                yield from ((uid, f"{driver}, claim {claim.claim_name}") for uid in claim.pod_uids or {})


def _decoded(path: str, text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as wrong:
        raise Unreadable(path, None, str(wrong)) from None


def _are_devices(host: Host, entry: _Entry) -> bool:
    """Whether the IDs of the devices name NVIDIA GPUs, or PCI functions that are GPUs or NICs."""
    devices = {"": entry.devices} if isinstance(entry.devices, list) else entry.devices or {}
    for name in (name for names in devices.values() for name in names or ()):
        if _GPU_ID.fullmatch(name):
            return True
        if _PCI_ID.fullmatch(name):
            try:
                if (host.read(f"sys/bus/pci/devices/{name}/class") or "0x02").startswith(_PCI_CLASSES):
                    return True
            except Unreadable:
                return True
    return False


def _running(host: Host, pods: Collection[str]) -> Collection[str]:
    """Return those pods that have processes. If no cgroup shows a pod, those whose folder exists; else all.

    The files keep devices of completed and removed pods until the next allocation
    (https://github.com/kubernetes/kubernetes/issues/137010). A completed pod has a folder, but no cgroup.
    """
    if pods and (trees := [*_pod_trees(host)]):
        named = [(_POD.fullmatch(name), f"{tree}/{name}") for tree in trees for name in host.list(tree)]
        cgroups = [(pod[1].replace("_", "-"), folder) for pod, folder in named if pod]
        return {uid for uid, folder in cgroups if uid in pods and populated(host, folder)}
    try:
        return host.list(_POD_FOLDERS) or pods
    except Unreadable:
        return pods


def _pod_trees(host: Host) -> Iterator[str]:
    """Yield the cgroup folders that contain a folder for each pod: one for each quality of service."""
    for root in (CGROUPS, f"{CGROUPS}/memory"):
        names = host.list(root)
        folders = [root, *(f"{root}/{name}" for name in names if _CGROUP_ROOTS.fullmatch(name))]
        for folder in folders:
            for name in host.list(folder):
                if _POD_CGROUPS.fullmatch(name):
                    tree = f"{folder}/{name}"
                    yield tree
                    yield from (f"{tree}/{below}" for below in host.list(tree) if _QUALITY.fullmatch(below))


def _has_pods(host: Host) -> bool:
    """Whether pods run. The host sees the pods' cgroups; a pod sees its own service account."""
    return any(_pod_trees(host)) or host.resolve("run/secrets/kubernetes.io") is not None
