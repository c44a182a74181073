"""Which sources are asked, in which order, and what may be measured."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ..models.report import Report
from ..probes.arrays import read_arrays
from ..probes.cpu import read_cpu
from ..probes.disks import read_disks
from ..probes.gpus import read_gpu_wiring, read_gpus
from ..probes.host_counters import read_host_counters
from ..probes.kernel_log import read_kernel_log
from ..probes.kfd import read_kfd
from ..probes.link_load import read_link_load
from ..probes.mounts import read_mounts
from ..probes.net import read_link_modes, read_net
from ..probes.node import read_node
from ..probes.numa import read_numa
from ..probes.nvme import read_nvme
from ..probes.pci import read_pci
from ..probes.pci_config import read_pci_config
from ..probes.pci_links import read_pci_links
from ..probes.pci_windows import read_pci_windows
from ..probes.probe import Plan
from ..probes.rdma import read_rdma
from ..probes.services import read_services
from ..probes.settings import read_settings
from .source import Source

READERS: tuple[Source, ...] = (
    read_node,
    read_cpu,
    read_numa,
    read_pci,
    read_pci_links,
    read_gpus,
    read_gpu_wiring,
    read_kfd,
    read_net,
    read_link_modes,
    read_rdma,
    read_nvme,
    read_disks,
    read_arrays,
    read_mounts,
    read_pci_windows,
    read_pci_config,
    read_settings,
    read_services,
    read_host_counters,
    read_kernel_log,
    read_link_load,
)
# What these say lasts until a device, a driver or the machine is started again: a daemon need not ask in every cycle.
SELDOM: frozenset[Source] = frozenset(
    {
        read_node,
        read_cpu,
        read_numa,
        read_pci,
        read_gpu_wiring,
        read_kfd,
        read_link_modes,
        read_pci_windows,
        read_pci_config,
    }
)
# What changes when somebody changes it.
SLOW: frozenset[Source] = frozenset({read_nvme, read_disks, read_arrays, read_mounts, read_settings, read_services})


def plan_of(probe: str) -> Plan:
    """What a probe would measure. Loaded when something is to be measured: looking alone does without all of them."""
    plan: Plan = import_module(f"..probes.{probe}", __package__).plan
    return plan


def measure_nothing(report: Report) -> Iterable[Source]:
    """For those who look and do not measure."""
    del report
    return ()
