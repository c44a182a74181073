"""The registry of sources: a new source is its file in probes/ and its line here."""

from __future__ import annotations

from collections.abc import Iterable

from ...models.report import Report
from ...probes import live_tools
from ...probes.gpu.amd_kfd import read_kfd
from ...probes.gpu.gpus import read_gpu_wiring, read_gpus
from ...probes.kernel_log.ring_buffer import read_kernel_log
from ...probes.network.net import read_link_modes, read_net
from ...probes.network.rdma import read_rdma
from ...probes.pcie.bars import read_pci_windows
from ...probes.pcie.busy_speed import read_link_load
from ...probes.pcie.config_space import read_pci_config
from ...probes.pcie.links import read_pci_links
from ...probes.pcie.pci import read_pci
from ...probes.storage.arrays import read_arrays
from ...probes.storage.disks import read_disks
from ...probes.storage.mounts import read_mounts
from ...probes.storage.nvme import read_nvme
from ...probes.storage.nvme_health import read_nvme_health
from ...probes.system.cpu import read_cpu
from ...probes.system.host_counters import read_host_counters
from ...probes.system.node import read_node
from ...probes.system.numa import read_numa
from ...probes.system.services import read_services
from ...probes.system.settings import read_settings
from .source import Interval, Source

_CYCLE, _SLOW, _DISCOVERY = Interval.CYCLE, Interval.SLOW, Interval.DISCOVERY
_LINKS = ("Pci.speed", "Pci.width", "Pci.lost", "Pci.aer_correctable", "Pci.aer_nonfatal", "Pci.aer_fatal")

# A service reads the sources in this order. Where two sources disagree, the first one is used.
SOURCES: tuple[Source, ...] = (
    Source("node", read_node, _DISCOVERY, ("Node",)),
    Source("cpu", read_cpu, _DISCOVERY, ("Package",)),
    Source("numa", read_numa, _DISCOVERY, ("Numa",)),
    Source("pci", read_pci, _DISCOVERY, ("Pci", "HostBridge")),
    Source("pci_links", read_pci_links, _CYCLE, _LINKS),
    Source("gpus", read_gpus, _CYCLE, ("Gpu", "GpuLink", "Driver")),
    Source("gpu_wiring", read_gpu_wiring, _DISCOVERY, ("Gpu", "GpuLink", "GpuPair")),
    Source("kfd", read_kfd, _DISCOVERY, ("Gpu", "GpuLink")),
    Source("net", read_net, _CYCLE, ("Net",)),
    Source("link_modes", read_link_modes, _DISCOVERY, ("Net.max_speed",)),
    Source("rdma", read_rdma, _CYCLE, ("Rdma", "Port")),
    Source("nvme", read_nvme, _SLOW, ("Nvme",)),
    Source("nvme_health", read_nvme_health, _SLOW, ("Nvme.critical_warning",)),
    Source("disks", read_disks, _SLOW, ("Disk",)),
    Source("arrays", read_arrays, _SLOW, ("Array",)),
    Source("mounts", read_mounts, _SLOW, ("Mount",)),
    Source("pci_windows", read_pci_windows, _DISCOVERY, ("Pci.bar1",)),
    Source("pci_config", read_pci_config, _DISCOVERY, ("Pci.acs", "Pci.max_payload", "Pci.max_read_request")),
    Source("settings", read_settings, _SLOW, ("Setting",)),
    Source("services", read_services, _SLOW, ("Service",)),
    Source("host_counters", read_host_counters, _CYCLE, ("Node.edac", "Package.throttle_time")),
    Source("kernel_log", read_kernel_log, _CYCLE, ("Event",)),
    Source("link_load", read_link_load, _CYCLE, ("Pci.speed",)),
)
# --with-tools adds these tools, if they are installed.
TOOLS: tuple[Source, ...] = tuple(Source(tool, live_tools.cross_check(tool)) for tool in live_tools.NAMES)


def named(*names: str) -> tuple[Source, ...]:
    """The sources of the registry with these names, in the order of the names."""
    known = {source.name: source for source in SOURCES}
    return tuple(known[name] for name in names)


def measure_nothing(report: Report, undecided: object = ()) -> Iterable[Source]:
    """No probes, for commands that only read."""
    del report, undecided
    return ()
