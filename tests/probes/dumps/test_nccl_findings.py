"""Findings from settings, transports and failures in logs of NCCL."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Mount, NcclFailure, Rdma, Service, Setting, Transport
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text


def findings(*facts: Record) -> list[Finding]:
    return list(evaluate(assemble(facts, Site(), 0.0, origin="dumps")).findings)


def told(*facts: Record) -> list[tuple[str, str, str, str]]:
    return [(one.code, one.severity, one.confidence, one.subject) for one in findings(*facts)]


FM = "nvidia-fabricmanager"
GEFORCE, H100 = Gpu(key="gpu0", name="NVIDIA GeForce RTX 4090"), Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3")
H100S = [Gpu(key=f"gpu{number}", name="NVIDIA H100 80GB HBM3") for number in range(8)]
EFA = Rdma(key="rdmap16s27", driver="efa")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([Setting(key="NCCL_P2P_DISABLE", value="1")], ["nccl-env"]),
        ([Setting(key="NCCL_P2P_DISABLE", value="0")], []),
        ([Setting(key="NCCL_P2P_DISABLE", value="1"), GEFORCE], []),
        (
            [Setting(key="NCCL_P2P_DISABLE", value="1"), GEFORCE, GpuLink(key="gpu0/nvlink0", gpu="gpu0", active=True)],
            ["nccl-env"],
        ),
        ([Setting(key="NCCL_P2P_LEVEL", value="NVL"), H100], []),
        ([Setting(key="NCCL_P2P_LEVEL", value="LOC"), H100], ["nccl-env"]),
        ([Setting(key="NCCL_IB_DISABLE", value="1")], ["nccl-env"]),  # as information
        ([Setting(key="NCCL_IB_DISABLE", value="1"), Rdma(key="mlx5_0")], ["nccl-env"]),
        ([Setting(key="NCCL_IB_DISABLE", value="1"), Rdma(key="rxe0")], []),
        ([Setting(key="NCCL_IB_DISABLE", value="1"), EFA], []),
        ([Setting(key="NCCL_NET", value="Socket"), EFA], ["nccl-env"]),
        ([Setting(key="NCCL_NET_PLUGIN", value="none"), EFA], ["nccl-env"]),
        ([Setting(key="NCCL_NET_PLUGIN", value="none"), Rdma(key="mlx5_0")], []),
        ([Setting(key="NCCL_NET_GDR_LEVEL", value="LOC"), Rdma(key="mlx5_0")], ["nccl-env"]),
        ([Setting(key="FI_PROVIDER", value="tcp;ofi_rxm"), EFA], ["nccl-env"]),
        ([Setting(key="FI_PROVIDER", value="efa"), EFA], []),
        ([Setting(key="FI_PROVIDER", value="tcp"), Rdma(key="mlx5_0")], []),
        ([Setting(key="NCCL_PROTO", value="LL")], ["nccl-env"]),
        ([Setting(key="FI_EFA_USE_DEVICE_RDMA", value="0"), EFA], ["nccl-env"]),
        ([Setting(key="NCCL_NVLS_ENABLE", value="0"), *H100S], ["nccl-env"]),
        ([Setting(key="NCCL_NVLS_ENABLE", value="0"), *H100S[:4]], []),
        ([Setting(key="NCCL_NVLS_ENABLE", value="1"), *H100S], []),
        ([Setting(key="NCCL_NCHANNELS_PER_NET_PEER", value="1"), Rdma(key="mlx5_0")], ["nccl-env"]),
        ([Setting(key="NCCL_NCHANNELS_PER_NET_PEER", value="2"), Rdma(key="mlx5_0")], []),
        ([Setting(key="NCCL_SHM_DISABLE", value="1"), *H100S], ["nccl-env"]),
        ([Setting(key="NCCL_IGNORE_CPU_AFFINITY", value="1"), *H100S], []),
        ([Setting(key="NCCL_PROTO", value="LL,LL128,Simple")], []),
        ([Rdma(key="mlx5_0", gpu_direct=False), Rdma(key="mlx5_1", gpu_direct=False)], ["gdr-disabled"]),
        ([Rdma(key="mlx5_0", gpu_direct=True)], []),
        ([Rdma(key="mlx5_0", gpu_direct=False), GEFORCE], []),
    ],
)
def test_what_switches_a_fast_path_off(facts: list[Record], expected: list[str]) -> None:
    assert [one[0] for one in told(*facts)] == expected


DEVICES = "n:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
VERBS, SOCKET = (f"n:1:2 [0] NCCL INFO Using network {name}\n" for name in ("IB", "Socket"))
DISABLED = "n:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.\n"


@pytest.mark.parametrize(
    ("log", "codes", "gaps"),
    [
        (DEVICES + VERBS + DISABLED, [], ["NCCL_IB_DISABLE"]),
        (DEVICES + DISABLED, [], ["NCCL_IB_DISABLE"]),
        (DEVICES + VERBS + DISABLED + SOCKET, ["nccl-env"], []),
        (DEVICES + VERBS + DISABLED.replace("to 1", "to 0"), [], []),
    ],
)
def test_a_log_that_uses_the_devices_and_disables_them_is_of_two_runs(
    log: str, codes: list[str], gaps: list[str]
) -> None:
    """With NCCL_IB_DISABLE=1, ncclIbInit of NCCL opens no device. A splice of two logs has both.

    https://github.com/NVIDIA/nccl/blob/v2.21.5-1/src/transport/net_ib.cc
    """
    report = evaluate(assemble(list(read_text("log.txt", log, 0.0)), Site(), 0.0, origin="dumps"))
    assert [one.code for one in report.findings] == codes
    assert [one.subject for one in report.not_checked if one.what == "Setting.value"] == gaps


FABRIC = [Gpu(key=f"gpu{n}", name="NVIDIA H100 80GB HBM3", nvlinks=18, fabric_state="completed") for n in (0, 1)]
SHM = Transport(key="gpu0-gpu1", via=("SHM/direct/direct",))


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([*FABRIC, SHM], [("p2p-disabled", "critical", "likely", "gpu0-gpu1")]),
        ([*FABRIC, Transport(key="gpu0-gpu1", via=("P2P/CUMEM",))], []),
        ([*FABRIC, Transport(key="gpu0-gpu1", via=("P2P/IPC", "SHM/direct/direct"))], []),
        ([*FABRIC, SHM, Setting(key="NCCL_P2P_DISABLE", value="1")], [("nccl-env", "critical", "certain", "node")]),
        ([Gpu(key="gpu0"), Gpu(key="gpu1"), SHM], []),
        ([SHM], []),
    ],
)
def test_transports(facts: list[Record], expected: list[tuple[str, str, str, str]]) -> None:
    assert told(*facts) == expected


REGISTRATION = NcclFailure(key="memory registration", error="Cannot allocate memory", text="x")
SPACE = NcclFailure(key="shared memory", error="No space left on device", size=9637888, text="x")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([REGISTRATION], ("memlock-low", "critical", "likely", "node")),
        ([REGISTRATION, Setting(key="memlock", value="65536")], ("memlock-low", "critical", "certain", "node")),
        (
            [REGISTRATION, Setting(key="memlock", value="unlimited")],
            ("not-enough-evidence", "info", "possible", "node"),
        ),
        ([SPACE], ("shm-small", "critical", "certain", "node")),
        ([SPACE, Mount(key="/dev/shm", size=64 << 20)], ("shm-small", "critical", "certain", "node")),
        ([NcclFailure(key="shared memory", text="x")], ("shm-small", "critical", "possible", "node")),
        ([NcclFailure(key="provider", text="x")], ("not-enough-evidence", "info", "certain", "node")),
        ([NcclFailure(key="CUDA", text="x")], ("not-enough-evidence", "info", "certain", "node")),
    ],
)
def test_failures(facts: list[Record], expected: tuple[str, str, str, str]) -> None:
    assert told(*facts) == [expected]


def test_a_fabric_that_nobody_set_up() -> None:
    """Error 802 is about NVSwitches. Cards without them have another cause. A stopped manager has its own finding."""
    unready = NcclFailure(key="CUDA", error="system not yet initialized", text="x")
    down, runs = ("fabric-manager-down", "critical", "likely", "nvidia-fabricmanager"), Service(key=FM, running=True)
    assert told(unready) == told(unready, Gpu(key="gpu0", name="NVIDIA A100-SXM4-80GB")) == [down]
    assert told(unready, runs) == [("fabric-manager-down", "critical", "possible", "nvidia-fabricmanager")]
    assert told(unready, GEFORCE) == []
    waiting = [Gpu(key=f"gpu{n}", name="NVIDIA H100 80GB HBM3", fabric_state="in progress") for n in (0, 1)]
    (finding,) = findings(unready, *waiting, replace(runs, running=False))
    assert finding.message.startswith("the service nvidia-fabricmanager does not run, and 2 of 2 GPUs")


def test_a_manager_that_does_not_run_and_a_fabric_of_which_nothing_is_told() -> None:
    eight = [Gpu(key=f"gpu{number}", name="NVIDIA H100 80GB HBM3") for number in range(8)]
    assert told(*eight, Service(key=FM, running=False)) == [("fabric-manager-down", "info", "possible", FM)]
    assert told(*eight[:2], Service(key=FM, running=False)) == [("fabric-manager-down", "info", "possible", FM)]
    joined = [replace(gpu, fabric_state="completed") for gpu in eight]
    assert told(*joined, Service(key=FM, running=False)) == []


def test_messages() -> None:
    size = Mount(key="/dev/shm", size=64 << 20)
    messages = [one.message for one in findings(REGISTRATION, SPACE, size, Rdma(key="mlx5_0", gpu_direct=False))]
    assert messages == [
        "NCCL does not let mlx5_0 reach GPU memory (GPU Direct RDMA is disabled): each byte to the network goes "
        "through host memory",
        "NCCL could not register memory for RDMA: Cannot allocate memory",
        "NCCL could not create a shared memory segment of 9637888 bytes (9.64 MB): No space left on device; /dev/shm "
        "has 67.1 MB",
    ]
