"""The registry of calls: what runs in a child process, because it can hang or moves bytes."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Call(Struct, frozen=True):
    """A function that runs in a child process. Captures show `name`."""

    name: str
    target: str  # "module:function", relative to linkgauge.probes; only the child imports it
    provides: str  # the `what` of the NotChecked if the call gives no record
    measures: bool = False  # moves bytes: it has a low priority and stops when a person holds the machine
    opens_driver: bool = False  # uses NVIDIA's driver through NVML: `linkgauge release` ends it
    alone: bool = False  # takes long by design: in a one-shot run no other call waits for it
    of_kernel: bool = False  # has the same result in every namespace: PCI and NVIDIA's driver have no namespaces


_CALLS = (
    Call("collective", "measure.gpu.collective:collectives", "collective", measures=True),
    Call("cpu_name", "system.cpu_name:name", "Package.model", alone=True),
    Call("device_memory", "measure.gpu.device_memory:copies", "device_memory", measures=True),
    Call("disk_read", "measure.disk.disk_read:reads", "disk_read", measures=True),
    Call("ethtool", "network.ethtool:link_modes", "Net.max_speed"),
    Call("fabric_manager", "system.fabric_manager:version", "Service.version"),
    Call("host_copy", "measure.gpu.host_copy:copies", "host_copy", measures=True),
    Call("host_memory", "measure.memory.host_memory:copies", "host_memory", measures=True),
    Call("journal", "kernel_log.journal:read", "Event", alone=True),
    Call("link_load", "pcie.busy_speed:sample", "Pci.speed", alone=True, of_kernel=True),
    Call("nvme_health", "storage.nvme_health:health", "Nvme.critical_warning"),
    Call("nvml", "gpu.nvml:state", "Gpu", opens_driver=True, of_kernel=True),
    Call("nvml_drain", "gpu.nvml_drain:drained", "Pci.drained", opens_driver=True, of_kernel=True),
    Call("nvml_live", "gpu.nvml_live:values", "nvml_live", opens_driver=True, of_kernel=True),
    Call("nvml_serials", "gpu.nvml_serials:serials", "nvml_serials", opens_driver=True, of_kernel=True),
    Call("nvml_traffic", "gpu.nvml_traffic:peaks", "nvml_traffic", opens_driver=True, of_kernel=True),
    Call("nvml_use", "gpu.nvml_use:use", "nvml_use", opens_driver=True, of_kernel=True),
    Call("nvml_wiring", "gpu.nvml_topology:wiring", "GpuPair", opens_driver=True, of_kernel=True),
    Call("pci_config", "pcie.config_space:capabilities", "Pci.acs", of_kernel=True),
    Call("peer_copy", "measure.gpu.peer_copy:copies", "peer_copy", measures=True),
    Call("port_loopback", "measure.network.port_loopback:writes", "port_loopback", measures=True),
    Call("statvfs", "storage.statvfs:free_space", "Mount.free"),
    Call("tools", "live_tools:outputs", "tools", alone=True),
)
CALLS: Mapping[str, Call] = {call.name: call for call in _CALLS}
