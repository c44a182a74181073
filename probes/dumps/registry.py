"""The registry of dump readers: a new reader is its file in this folder and its line here.

A file has BEGIN, a regular expression for the line with which an output begins (split.py), and the function that reads
an output. LINES = True says that each line has a meaning without the lines around it.
"""

from __future__ import annotations

import sys

from ..targets import load
from .reader import Reader


def _reader(name: str, target: str) -> Reader:
    """The reader with this public name. "module:function" is its function, relative to linkgauge.probes."""
    read = load(target)
    module = sys.modules[read.__module__]
    return Reader(name, module.BEGIN, read, getattr(module, "LINES", False))


FAMILIES: tuple[Reader, ...] = (
    _reader("amd_smi", "dumps.amd_smi:read"),
    _reader("bug_report", "dumps.bug_report:read"),
    _reader("cpu_text", "dumps.cpu_text:read"),
    _reader("cuda_bandwidth", "dumps.cuda_bandwidth:read"),
    _reader("dcgm", "dumps.dcgm:read"),
    _reader("environment", "dumps.environment:read"),
    _reader("fabric_log", "dumps.fabric_log:read"),
    _reader("fi_info", "dumps.fi_info:read"),
    _reader("fio", "dumps.fio:read"),
    _reader("gds", "dumps.gds:read"),
    _reader("gpu_copy", "dumps.gpu_copy:read"),
    _reader("host_text", "dumps.host_text:read"),
    _reader("hwloc_text", "dumps.hwloc_text:read"),
    _reader("hwloc_xml", "dumps.hwloc_xml:read"),
    _reader("ib_fabric", "dumps.ib_fabric:read"),
    _reader("iperf", "dumps.iperf:read"),
    _reader("kernel_text", "dumps.kernel_text:read"),
    _reader("lspci", "dumps.lspci:read"),
    _reader("lspci_records", "dumps.lspci_records:read"),
    _reader("lspci_tree", "dumps.lspci_tree:read"),
    _reader("nccl", "dumps.nccl:read"),
    _reader("nccl_json", "dumps.nccl_json:read"),
    _reader("nccl_topo", "dumps.nccl_topo:read"),
    _reader("net_json", "dumps.net_json:read"),
    _reader("net_tools", "dumps.net_tools:read"),
    _reader("numactl", "dumps.numactl:read"),
    _reader("nvbandwidth", "dumps.nvbandwidth:read"),
    _reader("p2p_bandwidth", "dumps.p2p_bandwidth:read"),
    _reader("pairwise", "dumps.pairwise:read"),
    _reader("perftest", "dumps.perftest:read"),
    _reader("rdma_tools", "dumps.rdma_tools:read"),
    _reader("rocm_copy", "dumps.rocm_copy:read"),
    _reader("rocm_smi", "dumps.rocm_smi:read"),
    _reader("smi_csv", "dumps.smi_csv:read"),
    _reader("smi_nvlink", "dumps.smi_nvlink:read"),
    _reader("smi_query", "dumps.smi_query:read"),
    _reader("smi_table", "dumps.smi_table:read"),
    _reader("smi_topology", "dumps.smi_topology:read"),
    _reader("storage_json", "dumps.storage_json:read"),
    _reader("storage_text", "dumps.storage_text:read"),
    _reader("stream", "dumps.stream:read"),
    _reader("superbench", "dumps.superbench:read"),
    _reader("sysfs_text", "dumps.sysfs_text:read"),
)
