"""Texts of node checks, agents, Kubernetes and tools that state a fault: the code, the severity and the device."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1795230000.0
NHC = "ERROR:  nhc:  Health check failed:  "
GPU = "0000:65:00.0"


def report(text: str) -> Report:
    return evaluate(assemble(list(read_text("t.txt", f"{text}\n", AT)), Site(), AT, origin="dumps"))


def faults(text: str) -> set[tuple[str, str, str]]:
    return {(one.code, one.severity, one.subject) for one in report(text).findings if one.severity != "info"}


AZURE = [
    ("check_gpu_count: Expected to see 8 but found 6. FaultCode: NHC2009", "gpu-missing", "critical", "node"),
    ("check_nvme_count: Expected to see 8 but found 7. FaultCode: NHC2009", "storage-degraded", "warning", "node"),
    ("check_gpu_bw: D2H test on GPU 5 failed. Bandwidth 12.5 is less than 52", "bandwidth-low", "warning", "gpu5"),
    (
        "check_gpu_bw: P2P test on GPU 2 to GPU 6 failed. Bandwidth 90 is less than 300",
        "bandwidth-low",
        "warning",
        "gpu2",
    ),
    ("check_gpu_bw: CPU 0 to GPU 3: Less than expectd 25 GB/s, result: 11 GB/s", "bandwidth-low", "warning", "gpu3"),
    (
        "run_ib_bw_gdr: ib_write_bw, IB=mlx5_ib5, mlx5_ib5, IB BW (expected > 380 Gbps, but measured 91.3 Gbps.",
        "bandwidth-low",
        "warning",
        "mlx5_ib5",
    ),
    (
        "check_ib_link_flapping: IB link flapping detected, multiple IB link flapping events within 6 hours.",
        "nic-port-flapping",
        "warning",
        "node",
    ),
    ("check_gpu_xgmi: XGMI error count: 3 on GPU 6. FaultCode: NHCNA", "nvlink-errors", "warning", "gpu6"),
    ("check_nvlink_status: GPU 4 has nvlinks inactive: Link 3: Inactive.", "nvlink-inactive", "critical", "gpu4"),
    ("check_ecc: GPU id 2: Row remap pending. FaultCode: NHC2007", "gpu-ecc", "critical", "gpu2"),
]


@pytest.mark.parametrize(("text", "code", "severity", "subject"), AZURE)
def test_a_node_check_of_azure(text: str, code: str, severity: str, subject: str) -> None:
    assert faults(f"{NHC}{text}") == {(code, severity, subject)}


@pytest.mark.parametrize(
    "text",
    [
        "SUCCESS:  nhc:  Health check passed:  check_gpu_count: Expected 8 and found 8",
        "SUCCESS:  nhc:  Health check passed:  check_ib_bw_gdr: IB write bandwidth test IB_WRITE_BW passed for "
        "IB=mlx5_ib5, IB BW=392.1 Gbps",
        "SUCCESS:  nhc:  Health check passed:  check_ib_link_flapping: No IB link flapping found",
        "No new IB link flapping events detected",
        "check_gpu_xgmi: XGMI error count: 0 on GPU 6.",
    ],
)
def test_a_node_check_that_passed(text: str) -> None:
    assert not faults(text)


def condition(kind: str, status: str, reason: str, message: str) -> str:
    return (
        f'conditions:\n- lastTransitionTime: "2026-11-02T10:00:00Z"\n  message: {message}\n  reason: {reason}\n'
        f'  status: "{status}"\n  type: {kind}\n- message: kubelet is posting\n  reason: KubeletReady\n'
        '  status: "True"\n  type: Ready\n'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (condition("GPUMissing", "True", "GPUMissing", "7 devices"), {("gpu-missing", "critical", "node")}),
        (condition("GpuUnhealthy", "True", "GpuLost", "'Xid 79: no answer'"), {("gpu-xid", "critical", "gpu")}),
        (condition("NicProblem", "True", "PortDown", "ports down: mlx5_4"), {("nic-port-down", "warning", "mlx5_4/1")}),
        (
            "FilesystemIsReadOnly   True   ReadonlyFilesystem   a file system is read-only",
            {("storage-degraded", "critical", "node")},
        ),
        (
            '{"time":"2026-11-02T10:00:00Z","name":"error_xid","type":"Fatal","message":"XID 79 on GPU-0000:65:00"}',
            {("gpu-xid", "critical", GPU)},
        ),
        (
            '{"time":"2026-11-02T10:00:00Z","name":"ib_port_flap","type":"Warning","message":"mlx5_4 port 1 flapped"}',
            {("nic-port-flapping", "warning", "mlx5_4/1")},
        ),
    ],
)
def test_a_state_of_a_node(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert faults(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        condition("GPUMissing", "False", "NoGPUMissing", "GPU count is as expected"),
        condition("KernelDeadlock", "False", "KernelHasNoDeadlock", "kernel has no deadlock"),
        "FilesystemIsReadOnly   False   FilesystemIsNotReadOnly   all is well",
        "gpu-node-17   Ready   <none>   12d   v1.31.2",
        '{"time":"2026-11-02T10:00:00Z","name":"ib_port_flap","type":"Info","message":"mlx5_4 port 1 is active"}',
    ],
)
def test_a_healthy_state_of_a_node(text: str) -> None:
    assert not report(text).findings


def test_a_node_that_is_not_ready_is_named() -> None:
    (found,) = report("gpu-node-17   NotReady,SchedulingDisabled   <none>   12d   v1.31.2").findings
    assert "gpu-node-17" in found.message


HEALTH_OF_TWO = """\
| Group 1    | Overall Health: Warning                                       |
| GPU ID: 0  | Warning                                                       |
|            | PCIe system: Warning - Detected more than 8 PCIe              |
|            | replays per minute for GPU 0: 13                              |
+------------------+---------------------------------------------------------+
| GPU ID: 1  | Warning                                                       |
|            | InfoROM system: Warning - A corrupt InfoROM has been          |
|            | detected in GPU 1.                                            |
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEALTH_OF_TWO, {("pcie-errors", "warning", "gpu0"), ("gpu-driver-failed", "warning", "gpu1")}),
        ("Bandwidth of GPU 2 in direction Host->Device of 9.20 did not exceed minimum required bandwidth of 24.00.",
         {("bandwidth-low", "warning", "gpu2")}),
        ("GPU 5 is running at PCI link width 8, which is below the minimum allowed link width of 16",
         {("pcie-link-narrow", "critical", "gpu5")}),
        ("Detected clock throttle due to thermal violation in GPU 4.", {("gpu-throttled", "warning", "gpu4")}),
        ("A double-bit ECC error has violated policy manager values.", {("gpu-ecc", "critical", "node")}),
    ],
)  # fmt: skip
def test_a_sentence_of_dcgm(text: str, expected: set[tuple[str, str, str]]) -> None:
    assert faults(text) == expected


def test_a_health_table_without_reasons_names_the_gpu() -> None:
    found = report("| Overall Health | Failure |\n| GPU 4          | Failure |\n| GPU 5          | Healthy |").findings
    assert [one.subject for one in found] == ["gpu4"]


SMART = "Smart Log for NVME device:nvme4n1 namespace-id:ffffffff\ncritical_warning : 0\ntemperature : {} °C (300 K)\n"


@pytest.mark.parametrize(
    ("degrees", "minutes", "expected"),
    [(91, 55, [("warning", "nvme4")]), (41, 55, [("info", "nvme4")]), (41, 0, [])],
)
def test_a_drive_above_its_critical_temperature(degrees: int, minutes: int, expected: list[tuple[str, str]]) -> None:
    found = report(f"{SMART.format(degrees)}Critical Composite Temperature Time : {minutes}\n").findings
    assert [(one.severity, one.subject) for one in found] == expected


def test_lanes_that_the_kernel_did_not_give_a_gpu() -> None:
    line = (
        "nvidia 0000:65:00.0: {} Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe {} link at 0000:64:00.0 "
        "(capable of 252.048 Gb/s with {} PCIe x16 link)"
    )
    narrow, slow = line.format("63.008", "x4", "16.0 GT/s"), line.format("252.048", "x16", "32.0 GT/s")
    assert faults(narrow) == {("pcie-path-bottleneck", "warning", "0000:64:00.0")}
    assert not faults(slow)


def test_an_rdma_device_that_nccl_does_not_find_is_a_fault_if_the_job_names_it() -> None:
    line = "n1:1:2 [0] NCCL INFO NET/IB : No device found."
    assert [(one.code, one.severity) for one in report(line).findings] == [("nic-missing", "info")]
    named = f"n1:1:2 [0] NCCL INFO NCCL_IB_HCA set to mlx5\n{line}"
    assert ("nic-missing", "critical", "node") in faults(named)
