"""The registry of dump readers. A new reader needs its own file in a package of this folder and a line here.

The file has BEGIN, a regular expression for the first line of an output (core/split.py), and the function `read`. LINES
= True means that each line has a meaning of its own. ANY_LINE is a regular expression for lines within an output, which
the reader understands without the lines around them. `find` names the lines of a part in no known format that it reads.
"""

from __future__ import annotations

import sys

from ..calls.targets import load
from .core.reader import Reader


def _reader(name: str, target: str) -> Reader:
    """The reader with this public name. `target` is "module:function" relative to linkgauge.probes."""
    read = load(target)
    module = sys.modules[read.__module__]
    lines, any_line, find = (getattr(module, one, None) for one in ("LINES", "ANY_LINE", "find"))
    return Reader(name, module.BEGIN, read, bool(lines), any_line or "", find)


READERS: tuple[Reader, ...] = (
    _reader("amd_smi", "dumps.amd.amd_smi:read"),
    _reader("arrays_text", "dumps.host.arrays_text:read"),
    _reader("bonding", "dumps.network.bonding:read"),
    _reader("bug_report", "dumps.nvidia.bug_report:read"),
    _reader("cpu_text", "dumps.host.cpu_text:read"),
    _reader("cuda_bandwidth", "dumps.benchmarks.cuda_bandwidth:read"),
    _reader("dcgm", "dumps.nvidia.dcgm:read"),
    _reader("dcgm_metrics", "dumps.gpu_tools.dcgm_metrics:read"),
    _reader("dmon", "dumps.nvidia.dmon:read"),
    _reader("environment", "dumps.host.environment:read"),
    _reader("fabric_errors", "dumps.network.fabric_errors:read"),
    _reader("fabric_log", "dumps.nvidia.fabric_log:read"),
    _reader("fabtests", "dumps.benchmarks.fabtests:read"),
    _reader("fi_info", "dumps.network.fi_info:read"),
    _reader("fio", "dumps.benchmarks.fio:read"),
    _reader("gds", "dumps.nvidia.gds:read"),
    _reader("gpu_burn", "dumps.gpu_tools.gpu_burn:read"),
    _reader("gpu_copy", "dumps.benchmarks.gpu_copy:read"),
    _reader("gpustat", "dumps.gpu_tools.gpustat:read"),
    _reader("host_text", "dumps.host.host_text:read"),
    _reader("hwloc_text", "dumps.host.hwloc_text:read"),
    _reader("hwloc_xml", "dumps.host.hwloc_xml:read"),
    _reader("ib_fabric", "dumps.network.ib_fabric:read"),
    _reader("imex", "dumps.nvidia.imex:read"),
    _reader("iperf", "dumps.benchmarks.iperf:read"),
    _reader("kernel_text", "dumps.host.kernel_text:read"),
    _reader("known_tools", "dumps.health.known_tools:read"),
    _reader("kubernetes_node", "dumps.gpu_tools.kubernetes_node:read"),
    _reader("lshw", "dumps.pci.lshw:read"),
    _reader("lspci", "dumps.pci.lspci:read"),
    _reader("lspci_records", "dumps.pci.lspci_records:read"),
    _reader("lspci_tree", "dumps.pci.lspci_tree:read"),
    _reader("memory_errors", "dumps.health.memory_errors:read"),
    _reader("mlc", "dumps.health.mlc:read"),
    _reader("mlxlink", "dumps.network.mlxlink:read"),
    _reader("nccl", "dumps.benchmarks.nccl:read"),
    _reader("nccl_json", "dumps.benchmarks.nccl_json:read"),
    _reader("nccl_ras", "dumps.jobs.nccl_ras:read"),
    _reader("nccl_topo", "dumps.host.nccl_topo:read"),
    _reader("net_json", "dumps.network.net_json:read"),
    _reader("net_tools", "dumps.network.net_tools:read"),
    _reader("nic_counters", "dumps.network.nic_counters:read"),
    _reader("nic_module", "dumps.network.nic_module:read"),
    _reader("numactl", "dumps.host.numactl:read"),
    _reader("nvbandwidth", "dumps.benchmarks.nvbandwidth:read"),
    _reader("p2p_bandwidth", "dumps.benchmarks.p2p_bandwidth:read"),
    _reader("pairwise", "dumps.benchmarks.pairwise:read"),
    _reader("pciconf", "dumps.pci.pciconf:read"),
    _reader("perftest", "dumps.benchmarks.perftest:read"),
    _reader("rates", "dumps.rates.rates:read"),
    _reader("rdma_tools", "dumps.network.rdma_tools:read"),
    _reader("rocm_copy", "dumps.benchmarks.rocm_copy:read"),
    _reader("rocm_smi", "dumps.amd.rocm_smi:read"),
    _reader("sensors", "dumps.health.sensors:read"),
    _reader("simple_tools", "dumps.benchmarks.simple_tools:read"),
    _reader("slurm_nodes", "dumps.gpu_tools.slurm_nodes:read"),
    _reader("smart_log", "dumps.host.smart_log:read"),
    _reader("smi_csv", "dumps.nvidia.smi_csv:read"),
    _reader("smi_nvlink", "dumps.nvidia.smi_nvlink:read"),
    _reader("smi_query", "dumps.nvidia.smi_query:read"),
    _reader("smi_table", "dumps.nvidia.smi_table:read"),
    _reader("smi_topology", "dumps.nvidia.smi_topology:read"),
    _reader("storage_json", "dumps.host.storage_json:read"),
    _reader("storage_text", "dumps.host.storage_text:read"),
    _reader("stream", "dumps.benchmarks.stream:read"),
    _reader("superbench", "dumps.benchmarks.superbench:read"),
    _reader("switch_ports", "dumps.network.switch_ports:read"),
    _reader("sysfs_text", "dumps.host.sysfs_text:read"),
    _reader("windows_links", "dumps.pci.windows_links:read"),
    # the last ones: lists and lines of any words about devices, if they are of no tool
    _reader("device_lists", "dumps.lists.device_lists:read"),
    _reader("xid_notes", "dumps.notes.xid_notes:read"),
    _reader("device_notes", "dumps.notes.device_notes:read"),
)
