"""Which sources are asked, in which order, and what a report makes worth measuring."""

from __future__ import annotations

from collections.abc import Iterable

from ..models.report import Report
from ..probes.arrays import read_arrays
from ..probes.cpu import read_cpu
from ..probes.disks import read_disks
from ..probes.host_memory import copies
from ..probes.kernel_log import read_kernel_log
from ..probes.link_load import read_link_load
from ..probes.mounts import read_mounts
from ..probes.net import read_link_modes, read_net
from ..probes.node import read_node
from ..probes.numa import read_numa
from ..probes.nvme import read_nvme
from ..probes.pci import read_pci
from ..probes.pci_links import read_pci_links
from ..probes.rdma import read_rdma
from .idle import busy_because, not_measured
from .pipeline import Source

READERS: tuple[Source, ...] = (
    read_node, read_cpu, read_numa, read_pci, read_pci_links, read_net, read_link_modes, read_rdma, read_nvme,
    read_disks, read_arrays, read_mounts, read_kernel_log, read_link_load,
)  # fmt: skip


def measure(report: Report) -> Iterable[Source]:
    """Each flow that was not measured yet; of those that were, what is slow and unexplained once more."""
    probes = copies(report)
    measured = {level.flow.subject for level in report.levels}
    if measured:
        slow = {finding.subject for finding in report.findings if finding.code == "bandwidth-low"}
        return [probe for end, probe in probes.items() if end in slow & measured]
    if any(run.name == "idle" for run in report.runs):
        return []
    why = busy_because()
    return [not_measured(why)] if why else list(probes.values())


def measure_nothing(report: Report) -> Iterable[Source]:
    """For captures, dumps and `--passive`."""
    del report
    return ()
