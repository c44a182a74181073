"""The public names in all registries: captures, metrics, runs, reports and options show them, so they never change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from linkgauge.agent.measuring.registry import PROBES, plan_of
from linkgauge.agent.pipeline.registry import SOURCES, TOOLS
from linkgauge.agent.pipeline.source import Interval
from linkgauge.models.facts.registry import RECORDS, kind_name
from linkgauge.probes.calls.registry import CALLS, Call
from linkgauge.probes.calls.targets import load
from linkgauge.probes.dumps.registry import READERS

SOURCE_NAMES = (
    "node cpu numa pci pci_links gpus gpu_wiring kfd net link_modes rdma nvme nvme_health disks arrays mounts "
    "pci_windows pci_config settings services host_counters kernel_log link_load"
)
SLOW = "nvme nvme_health disks arrays mounts settings services"
DISCOVERY = "node cpu numa pci gpu_wiring kfd link_modes pci_windows pci_config"
CALLED = (
    "collective cpu_name device_memory disk_read ethtool fabric_manager host_copy host_memory journal link_load "
    "nvme_health nvml nvml_drain nvml_live nvml_serials nvml_traffic nvml_use nvml_wiring pci_config "
    "peer_copy port_loopback statvfs tools"
)
MEASURING = "collective device_memory disk_read host_copy host_memory peer_copy port_loopback"
DRIVER = "nvml nvml_drain nvml_live nvml_serials nvml_traffic nvml_use nvml_wiring"
PROBED = "host_copy peer_copy device_memory host_memory port_loopback collective disk_read"
DUMPS = (
    "amd_smi arrays_text bonding bug_report cpu_text cuda_bandwidth dcgm dcgm_metrics dmon environment "
    "fabric_errors fabric_log fabtests fi_info fio gds gpu_burn gpu_copy gpustat host_text hwloc_text hwloc_xml "
    "ib_fabric imex iperf kernel_text known_tools kubernetes_node lshw lspci lspci_records lspci_tree memory_errors "
    "mlc mlxlink nccl nccl_json nccl_ras nccl_topo net_json net_tools nic_counters nic_module numactl nvbandwidth "
    "p2p_bandwidth pairwise pciconf perftest rates rdma_tools rocm_copy rocm_smi sensors simple_tools "
    "slurm_nodes smart_log smi_csv smi_nvlink smi_query smi_table smi_topology storage_json storage_text "
    "stream superbench switch_ports sysfs_text windows_links device_lists xid_notes device_notes"
)
KINDS = (
    "Node Package Numa HostBridge Pci Driver Gpu GpuLink GpuPair Net Rdma Port NicPath Gid Nvme Optics Disk Array "
    "Mount Setting Serial Service Event Nccl Transport NcclFailure NodePair Rank BmcLink BmcPart Temperature "
    "DiskHealth OfferedDevices Observation NotChecked Run"
)


@pytest.mark.parametrize(
    ("registry", "names"),
    [
        ([one.name for one in SOURCES], SOURCE_NAMES),
        ([one.name for one in SOURCES if one.interval is Interval.SLOW], SLOW),
        ([one.name for one in SOURCES if one.interval is Interval.DISCOVERY], DISCOVERY),
        ([one.name for one in TOOLS], "nvidia-smi lstopo ibstat"),
        ([*CALLS], CALLED),
        ([name for name, call in CALLS.items() if call.measures], MEASURING),
        ([name for name, call in CALLS.items() if call.opens_driver], DRIVER),
        ([*PROBES], PROBED),
        ([one.name for one in READERS], DUMPS),
        ([*RECORDS], KINDS),
    ],
    ids=["sources", "slow", "discovery", "tools", "calls", "measuring", "driver", "probes", "dumps", "kinds"],
)
def test_public_names_stay_as_they_are(registry: Sequence[str], names: str) -> None:
    assert list(registry) == names.split()
    assert len(set(registry)) == len(registry)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_function_of_each_call_exists(call: Call) -> None:
    assert CALLS[call.name] is call
    assert callable(load(call.target))


def test_the_plan_of_each_probe_exists_and_plans_a_call_that_measures() -> None:
    assert all(callable(plan_of(name)) for name in PROBES)
    assert {name for name, call in CALLS.items() if call.measures} == set(PROBES)


def test_each_kind_has_its_own_name() -> None:
    assert [kind_name(kind) for kind in RECORDS.values()] == list(RECORDS)


def test_what_sources_and_calls_provide_is_of_a_known_kind() -> None:
    provided = [word for one in SOURCES for word in one.provides]
    provided += [call.provides for name, call in CALLS.items() if call.provides != name]
    assert {word.partition(".")[0] for word in provided} <= set(RECORDS)
    assert all(one.provides for one in SOURCES)
