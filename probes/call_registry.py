"""The registry of calls: what runs in a child process, because it can hang or moves bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """A function that runs in a child process, with the name that captures show."""

    name: str
    target: str  # "module:function", relative to linkgauge.probes; only the child imports it
    provides: str  # what a NotChecked names where the call does not answer
    measures: bool = False  # moves bytes: it has a low priority and stops when a person holds the machine
    opens_driver: bool = False  # it asks NVIDIA's driver through NVML: `linkgauge release` closes the driver


_CALLS = (
    Call("collective", "collective:collectives", "collective", measures=True),
    Call("device_memory", "device_memory:copies", "device_memory", measures=True),
    Call("disk_read", "disk_read:reads", "disk_read", measures=True),
    Call("ethtool", "ethtool:link_modes", "Net.max_speed"),
    Call("fabric_manager", "fabric_manager:version", "Service.version"),
    Call("host_copy", "host_copy:copies", "host_copy", measures=True),
    Call("host_memory", "host_memory:copies", "host_memory", measures=True),
    Call("journal", "journal:read", "Event"),
    Call("link_load", "link_load:sample", "Pci.speed"),
    Call("nvml", "nvml:state", "Gpu", opens_driver=True),
    Call("nvml_serials", "nvml_serials:serials", "nvml_serials", opens_driver=True),
    Call("nvml_traffic", "nvml_traffic:peaks", "nvml_traffic", opens_driver=True),
    Call("nvml_use", "nvml_use:use", "nvml_use", opens_driver=True),
    Call("nvml_wiring", "nvml_wiring:wiring", "GpuPair", opens_driver=True),
    Call("pci_config", "pci_config:capabilities", "Pci.acs"),
    Call("peer_copy", "peer_copy:copies", "peer_copy", measures=True),
    Call("port_loopback", "port_loopback:writes", "port_loopback", measures=True),
    Call("statvfs", "statvfs:free_space", "Mount.free"),
    Call("tools", "tools:outputs", "tools"),
)
CALLS: Mapping[str, Call] = {call.name: call for call in _CALLS}
