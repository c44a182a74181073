"""Facts of broken things, for finding codes without a described node: healthy facts, and the facts to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import (
    Gid,
    HostBridge,
    Mount,
    Nccl,
    NcclFailure,
    Net,
    Node,
    Numa,
    Nvme,
    Package,
    Pci,
    Port,
    Rdma,
    Service,
    Setting,
    Transport,
)
from linkgauge.models.facts.network_paths import NodePair
from linkgauge.models.facts.records import Flow, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.inventory import Inventory
from linkgauge.models.inventory.present import present
from linkgauge.models.report import Context, Origin
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.gpu_facts import BARE, NOW, address, board, counter, function, gpu
from tests.support.nodes.small_nodes import ROOT, bridge, copy, gpus_under_switches, observation, peers


@dataclass(frozen=True)
class Facts:
    """`well` alone gives no finding with the code. `further` added gives exactly one."""

    well: Sequence[Record]
    further: Sequence[Record]
    subject: str
    severity: str
    context: Context = "host"
    origin: Origin = "live"
    past: tuple[Observation, ...] = ()
    site: Site | None = None
    inventory: Inventory | None = None


GUEST = Node(key="node", virtual=True, hypervisor="KVM")
CARDS: list[Record] = [BARE, *(function(n, device=0x26B9, bar1_max=64 << 30) for n in range(4))]
L40S: list[Record] = [
    Gpu(key=f"gpu{n}", name="NVIDIA L40S", address=address(n), memory=48 << 30, bar1=64 << 30 if n != 2 else None)
    for n in range(4)
]
GB200 = [Gpu(key=f"gpu{n}", name="NVIDIA GB200", nvlinks=18, fabric_cluster="c1") for n in range(4)]
SWITCHED = [Gpu(key=f"gpu{n}", name="NVIDIA H100 80GB HBM3", nvlinks=18, fabric_state="completed") for n in (0, 1)]
NIC = Pci(key="0000:1c:00.0", parent="pci0000:10", pci_class=0x020700, vendor=0x15B3, device=0x1021)
HCA = Rdma(key="mlx5_0", address=NIC.key, driver="mlx5_core")
FABRIC = Port(
    key="mlx5_0/1", device="mlx5_0", state="ACTIVE", physical_state="LinkUp", rate=50e9, link_layer="InfiniBand"
)
XEON = Package(key="package0", vendor="GenuineIntel", cpus=(0,))
GIDS = [
    Gid(key=f"a/1/gid{n}", port="a/1", index=n, version="RoCE v2", scope=scope)
    for n, scope in ((1, "link-local"), (3, "IPv4"))
]
DISK = [
    bridge("0000:00:05.0", "pci0000:00"),
    Nvme(key="nvme0", address="0000:05:00.0", transport="pcie"),
    Pci(
        key="0000:05:00.0",
        parent="0000:00:05.0",
        pci_class=0x010802,
        vendor=0x144D,
        speed=16e9,
        width=4,
        max_speed=16e9,
        max_width=4,
        lost=False,
    ),
]


def sockets(*numas: int) -> list[Record]:
    """Two processors, each with a GPU and a fabric NIC on each of these NUMA nodes."""
    records: list[Record] = [BARE]
    for n in range(2):
        records += [Package(key=f"package{n}", cpus=(n,)), Numa(key=f"numa{n}", cpus=(n,), memory=1 << 36)]
        records += [
            HostBridge(key=f"pci0000:{n}0", numa=n),
            bridge(f"0000:{n}0:01.0", f"pci0000:{n}0"),
            function(n, numa=n, parent=f"0000:{n}0:01.0", max_width=16, width=16, max_speed=32e9),
        ]
    for number, numa in enumerate(numas):
        key, place = f"mlx5_{number}", f"0000:{0x40 + number:02x}:00.0"
        records.append(replace(NIC, key=place, parent=f"pci0000:{numa}0", numa=numa))
        records += [replace(HCA, key=key, address=place), replace(FABRIC, key=f"{key}/1", device=key)]
    return records


def roce(*mtus: int) -> list[Record]:
    """RoCE ports of 400 Gb/s on equal cards with these MTUs."""
    records: list[Record] = []
    for number, mtu in enumerate(mtus):
        place, net = f"0000:{0x40 + number:02x}:00.0", f"eth{number}"
        records.append(replace(NIC, key=place, pci_class=0x020000))
        records.append(
            Net(key=net, address=place, mtu=mtu, speed=50e9, carrier=True, enabled=True, link_type="ethernet")
        )
        records.append(replace(HCA, key=f"mlx5_{number}", address=place))
        port = replace(FABRIC, key=f"mlx5_{number}/1", device=f"mlx5_{number}", link_layer="Ethernet", netdev=net)
        records.append(replace(port, lanes="4X NDR"))
    return records


PLACES = {str(number + 1): address(number) for number in range(4)}
CROWD = (("gpu0", "gpu2"), ("gpu1", "gpu3"))
ALONE = [copy(ends, 54.0, via="pcie") for ends in CROWD]
TOGETHER = [copy(one, 3.0, via="pcie", beside=(other,)) for one, other in (CROWD, CROWD[::-1])]
NEAR = [
    *peers(54, [(0, 1), (1, 0)]),
    *(copy((f"gpu{n}", ROOT), 55.0) for n in range(4)),
    *(copy((ROOT, f"gpu{n}"), 55.0) for n in range(4)),
]

FACTS = {
    "bandwidth-low": Facts(gpus_under_switches(4), [copy(("gpu0", ROOT), 20.0)], "gpu0-pci0000:00", "critical"),
    "pcie-peer-slow": Facts(
        [*gpus_under_switches(4), *NEAR], peers(20, [(0, 2), (2, 0), (1, 3), (3, 1)]), ROOT, "warning"
    ),
    "pcie-concurrent-collapse": Facts([*gpus_under_switches(4), *ALONE], TOGETHER, "0000:01:00.0", "warning"),
    "storage-slow": Facts(
        DISK, [observation(Flow("read", ("nvme0", ROOT)), "rate", 2e9)], "nvme0-pci0000:00", "critical"
    ),
    "measurement-invalid": Facts(gpus_under_switches(4), [copy(("gpu0", ROOT), 110.0)], "gpu0-pci0000:00", "info"),
    "pcie-bar1-small": Facts([*CARDS, *L40S], [Gpu(key="gpu2", bar1=256 << 20)], address(2), "warning"),
    "pcie-topology-hidden": Facts([function(0), function(1)], [GUEST], "node", "warning"),
    "imex-not-ready": Facts(GB200, [Service(key="nvidia-imex", running=False)], "nvidia-imex", "critical", "job"),
    "p2p-disabled": Facts(
        SWITCHED, [Transport(key="gpu0-gpu1", via=("SHM/direct/direct",))], "gpu0-gpu1", "critical", origin="dumps"
    ),
    "nvlink-slow": Facts(board(nvlink_rate=None), [Gpu(key="gpu3", nvlink_rate=12.5e9)], address(3), "warning"),
    "gpu-memory-low": Facts(board(memory=None), [Gpu(key="gpu3", memory=64 << 30)], address(3), "warning"),
    "cpu-missing": Facts(
        [
            Node(key="node", virtual=False, smt="on"),
            Package(key="package0", cpus=tuple(range(8)), cores=4),
            Package(key="package1", cpus=tuple(range(8, 12)), cores=2),
        ],
        [Node(key="node", present_cpus=16)],
        "package1",
        "warning",
    ),
    "storage-missing": Facts(
        [
            BARE,
            function(0),
            *DISK,
            replace(DISK[2], key="0000:06:00.0"),
            Nvme(key="nvme1", address="0000:06:00.0", state="live"),
        ],
        [Pci(key="0000:06:00.0", physfn="0000:05:00.0")],
        "node",
        "critical",
        site=Site(machine=(Machine(name="ours", source="the order", gpu="NVIDIA H100*", nvme=2),)),
    ),
    "device-changed": Facts(
        [*CARDS, *L40S],
        [Gpu(key="gpu0", vbios="97.00")],
        address(0),
        "info",
        inventory=present(assemble([*CARDS, *L40S, Gpu(key="gpu0", vbios="96.00")], Site(), NOW - 100)),
    ),
    "firmware-mixed": Facts(
        [
            BARE,
            *(Rdma(key=f"mlx5_{n}", board_id="MT_0838", firmware="28.39.1002" if n < 2 else None) for n in range(3)),
        ],
        [Rdma(key="mlx5_2", firmware="28.35.1012")],
        "mlx5_2",
        "info",
    ),
    "nic-numa-remote": Facts(sockets(), sockets(0, 0, 0, 0), "package1", "warning"),
    "nic-mtu": Facts(roce(9000, 9000, 9216)[:-1], roce(9000, 9000, 9216, 1500)[-5:], "mlx5_3/1", "warning"),
    "nic-congestion": Facts(
        roce(9000),
        [counter("mlx5_0/1", "port_xmit_wait", 4e10)],
        "mlx5_0/1",
        "info",
        past=(counter("mlx5_0/1", "port_xmit_wait", 1e10, NOW - 10),),
    ),
    "device-misplaced": Facts(
        [BARE, *(function(n) for n in range(4)), *(gpu(n) for n in range(2))],
        [gpu(n, module_id=5 - n + 1) for n in range(2, 4)],
        "node",
        "warning",
        site=Site(machine=(Machine(name="ours", source="the order", gpu="NVIDIA H100*", gpu_places=PLACES),)),
    ),
    "nic-gid-index": Facts(
        [Rdma(key="a"), *GIDS], [Setting(key="NCCL_IB_GID_INDEX", value="1")], "a/1", "warning", origin="dumps"
    ),
    "gds-unavailable": Facts(
        [BARE, XEON, function(0), DISK[1]],
        [Setting(key="gds_module", value="none"), Setting(key="gds_library", value="cufile.json")],
        "node",
        "info",
    ),
    "memlock-low": Facts(
        [BARE, XEON, function(0), NIC, HCA, FABRIC],
        [Setting(key="memlock", value="65536"), Setting(key="locks_memory", value="0")],
        "node",
        "critical",
        "job",
    ),
    "shm-small": Facts(
        [BARE, function(0), function(1)], [Mount(key="/dev/shm", size=64 << 20)], "node", "critical", "job"
    ),
    "nccl-env": Facts([*SWITCHED], [Setting(key="NCCL_P2P_DISABLE", value="1")], "node", "critical", origin="dumps"),
    "nccl-version": Facts(
        [*SWITCHED, Nccl(key="nccl", ranks=16, network="IB")],
        [Nccl(key="nccl", version="2.18.1")],
        "node",
        "warning",
        origin="dumps",
    ),
    "node-slow": Facts(
        [NodePair(key=f"{a}-{b}", a=a, b=b, rate=88e9) for a, b in ("ab", "da")],
        [NodePair(key=f"{a}-{b}", a=a, b=b, rate=44e9) for a, b in ("bc", "cd")],
        "c",
        "critical",
        origin="dumps",
    ),
    "not-enough-evidence": Facts(
        [*SWITCHED], [NcclFailure(key="CUDA", error="x", text="x")], "node", "info", origin="dumps"
    ),
    "storage-full": Facts(
        [Mount(key="/home", device="/dev/sda1", size=1000, free=50)],
        [Mount(key="/scratch", device="/dev/md0", size=1000, free=49)],
        "/scratch",
        "warning",
        origin="dumps",
    ),
}
