"""Names of record kinds, fields and device kinds in reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...models.report import COHORT, Basis
from .terminal import safe

_KINDS = {
    "Node": ("machine", "this machine"),
    "Package": ("CPU package", "CPU packages"),
    "Numa": ("NUMA node", "NUMA nodes"),
    "HostBridge": ("host bridge", "host bridges"),
    "Pci": ("PCI function", "PCI functions"),
    "Gpu": ("GPU", "GPUs"),
    "GpuLink": ("GPU link", "GPU links"),
    "GpuPair": ("peer access of", "peer access of GPUs"),
    "NicPath": ("path of", "paths of RDMA devices"),
    "NvLink": ("NVLink", "NVLinks"),
    "Net": ("network device", "network devices"),
    "Rdma": ("RDMA device", "RDMA devices"),
    "Port": ("port", "ports of RDMA devices"),
    "Nvme": ("NVMe controller", "NVMe controllers"),
    "Disk": ("disk", "disks"),
    "Array": ("array", "arrays"),
    "Mount": ("file system", "file systems"),
    "Event": ("log entry", "the kernel log"),
    "NVML": ("NVML", "NVML"),
}

_FIELDS = {
    "Array.missing": "number of missing members",
    "Array.wanted": "number of members",
    "Gpu.bar1": "size of BAR1",
    "Gpu.clocks_hw_power_brake": "time of power brake",
    "Gpu.clocks_hw_thermal": "time slowed by hardware for heat",
    "Gpu.clocks_sw_power": "time at the power limit",
    "Gpu.clocks_sw_thermal": "time slowed by software for heat",
    "Gpu.ecc": "ECC mode",
    "Gpu.ecc_pending": "ECC mode after a reset",
    "Gpu.mig": "MIG mode",
    "Gpu.nvlink_errors": "error counters of NVLinks",
    "Gpu.nvlinks": "number of active NVLinks",
    "Gpu.pcie_replay": "PCIe replays",
    "Gpu.remap_failed": "rows of memory that could not be replaced",
    "Gpu.remap_pending": "rows of memory that wait for a reset",
    "Gpu.sram_threshold": "threshold of SRAM errors",
    "Gpu.sram_uncorrected": "uncorrected SRAM errors",
    "Gpu.vbios": "VBIOS",
    "GpuLink.remote": "far ends of links",
    "Mount.free": "free space",
    "Net.enabled": "whether it is enabled",
    "Net.max_speed": "highest speed",
    "Net.mtu": "MTU",
    "Net.partner_speed": "the other end's speed",
    "Node.bios": "BIOS version",
    "Node.virtual": "whether it is virtual",
    "Pci.acs": "access control (ACS)",
    "Pci.aer": "counters of PCIe errors (AER)",
    "Pci.bar1": "size of BAR1",
    "Pci.iommu_group": "IOMMU group",
    "Pci.max_speed": "highest link speed",
    "Pci.max_width": "greatest link width",
    "Pci.pci_class": "class",
    "Pci.physfn": "physical function",
    "Pci.speed": "link speed",
    "Pci.width": "link width",
    "Port.lid": "LID",
    "Port.netdev": "network device",
    "Rdma.hca_type": "HCA type",
    "address": "PCI address",
    "cpus": "processors",
    "fstype": "type",
    "numa": "NUMA node",
}

_DEVICES = {  # device kinds that a report counts, in this order
    "package": ("CPU package", "CPU packages"),
    "numa": ("NUMA node", "NUMA nodes"),
    "gpu": ("GPU", "GPUs"),
    "nvswitch": ("NVSwitch", "NVSwitches"),
    "nic": ("NIC", "NICs"),
    "port": ("RDMA port", "RDMA ports"),
    "nvme": ("NVMe controller", "NVMe controllers"),
    "disk": ("disk", "disks"),
    "array": ("array", "arrays"),
}
_OTHER_DEVICES = {"netdev": "network device", "pci": "PCI function", "storage": "storage controller"}


def device_counts(kinds: Sequence[str]) -> list[str]:
    """The main kinds of devices with their counts: "8 GPUs", "1 array"."""
    counted = ((kinds.count(kind), words) for kind, words in _DEVICES.items())
    return [f"{count} {words[count > 1]}" for count, words in counted if count]


def device_in_words(kind: str) -> str:
    """The name of a device kind of the topology: "GPU", "root port"."""
    if kind in _DEVICES:
        return _DEVICES[kind][0]
    return _OTHER_DEVICES.get(kind) or safe(kind.replace("-", " "))


def kind_in_words(kind: str, several: bool = False) -> str:
    """ "PCI function" for "Pci"; "fabric state" for "FabricState", which has no entry; other texts unchanged."""
    if kind in _KINDS:
        return _KINDS[kind][several]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", kind).lower() if kind.isidentifier() else kind


def in_words(kind: str, fields: Sequence[str], subjects: str, whole: bool) -> str:
    """The subject of a NotChecked: "link speed, link width of 0000:53:00.0". `whole`: the subject is the node."""
    if not fields:
        return kind_in_words(kind, True) if whole else f"{kind_in_words(kind)} {subjects}"
    names = (_FIELDS.get(f"{kind}.{field}") or _FIELDS.get(field) or field.replace("_", " ") for field in fields)
    return f"{', '.join(names)} of {kind_in_words(kind, True) if whole else subjects}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """ "1 check", "2 checks"."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def listed(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """ "a, b, c and 5 more"."""
    if len(names) <= most + 1:  # "and 1 more" is as long as the name
        return separator.join(names)
    return f"{separator.join(names[:most])} and {len(names) - most} more"


def basis_in_words(basis: Basis) -> str:
    """ "cohort" for "kin", the word of the JSON; other bases unchanged."""
    return "cohort" if basis == COHORT else basis
