from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.models.facts.machine import Array, Disk, Mount, Net, Nvme, Pci, Port, Rdma
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.records import Fact, NotChecked, Observation
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.synthetic_machines import GPU, NAMES, NODES, SMALL, said_of

GOLDEN = Path(__file__).parents[2] / "golden"
PORT = "0000:50:01.0"


def fact(machine: Recorded, kind: type[Fact], key: str) -> Fact | None:
    """What is said of one thing, without where it stood."""
    facts, _ = merge(said for said in said_of(machine) if isinstance(said, Fact))
    found = facts.get(kind, {}).get(key)
    if found is None:
        return None
    fields = {name: getattr(found, name) for name in found.__struct_fields__ if name != "cites"}
    return kind(**fields)


def node(name: str) -> Recorded:
    return build((NODES / f"{name}.toml").read_text())


def test_a_node_is_the_tree_that_a_kernel_shows(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "synthetic_small.capture", dump(build(SMALL)))


@pytest.mark.parametrize("name", NAMES)
def test_every_source_reads_the_whole_node(name: str) -> None:
    machine = node(name)
    said = said_of(machine)
    assert [one for one in said if isinstance(one, NotChecked)] == []
    assert parse(dump(machine)) == machine
    assert said_of(parse(dump(machine))) == said


@pytest.mark.parametrize("name", NAMES)
def test_a_made_up_node_identifies_nobody_but_by_its_name(name: str) -> None:
    machine = node(name)
    entries = {**machine.entries, "proc/sys/kernel/hostname": "some-node-1"}
    assert scrub(machine).entries == entries


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("desktop", {"Pci": 7, "Package": 1, "Numa": 1, "Net": 2, "Nvme": 1, "Disk": 4, "Mount": 2}),
        (
            "server-raid",
            {
                "Pci": 13,
                "Package": 2,
                "Numa": 2,
                "Net": 3,
                "Rdma": 2,
                "Port": 2,
                "Nvme": 4,
                "Disk": 8,
                "Array": 1,
                "Mount": 3,
            },
        ),
        (
            "hgx-h100",
            {"Pci": 69, "Package": 2, "Numa": 2, "Net": 11, "Rdma": 10, "Port": 10, "Nvme": 8, "Disk": 10, "Mount": 3},
        ),
        (
            "vm-p5",
            {"Pci": 115, "Package": 2, "Numa": 2, "Net": 2, "Rdma": 32, "Port": 32, "Nvme": 9, "Disk": 10, "Mount": 1},
        ),
    ],
)
def test_as_many_things_are_read_as_were_described(name: str, counts: dict[str, int]) -> None:
    facts, conflicts = merge(said for said in said_of(node(name)) if isinstance(said, Fact))
    found = Counter({kind.__name__: len(things) for kind, things in facts.items()})
    assert {kind: found[kind] for kind in counts} == counts
    assert conflicts == ()


HGX = (
    Pci(
        key="0000:1b:00.0",
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        subvendor=0x10DE,
        subdevice=0x16C1,
        name="NVIDIA H100 SXM5 80GB",
        parent="0000:1a:00.0",
        speed=32e9,
        width=16,
        max_speed=32e9,
        max_width=16,
        numa=0,
        driver="nvidia",
        iommu_group=13,
        lost=False,
        bar1=128 << 30,
        bar1_max=128 << 30,
        max_payload=256,
        max_read_request=512,
        relaxed_ordering=True,
    ),
    Rdma(
        key="mlx5_2",
        address="0000:1c:00.0",
        driver="mlx5_core",
        board_id="MT_0000000838",
        hca_type="MT4129",
        firmware="28.39.1002",
    ),
    Port(
        key="mlx5_2/1",
        device="mlx5_2",
        state="ACTIVE",
        physical_state="LinkUp",
        rate=50e9,
        lanes="4X NDR",
        link_layer="InfiniBand",
        lid=1,
        netdev="ib0",
    ),
    Net(
        key="ib0",
        address="0000:1c:00.0",
        driver="mlx5_core",
        speed=50e9,
        duplex="full",
        mtu=2044,
        carrier=True,
        enabled=True,
        link_type="infiniband",
        port=0,
    ),
    Net(
        key="eth1",
        address="0000:11:00.1",
        driver="mlx5_core",
        max_speed=25e9 / 8,
        mtu=1500,
        enabled=False,
        link_type="ethernet",
        port=0,
    ),
    Nvme(
        key="nvme7",
        address="0000:c0:00.0",
        model="SAMSUNG MZQL23T8HCLS-00A07",
        firmware="GDC5902Q",
        state="live",
        transport="pcie",
        critical_warning=0,
        spare=100,
        spare_threshold=10,
        used=0,
        media_errors=0,
    ),
    Pci(
        key="0000:d9:00.0",
        pci_class=0x068000,
        vendor=0x10DE,
        device=0x22A3,
        subvendor=0x10DE,
        subdevice=0x22A3,
        name="NVIDIA H100 NVSwitch",
        parent="0000:d8:01.0",
        speed=16e9,
        width=2,
        max_speed=16e9,
        max_width=2,
        numa=1,
        driver="nvidia-nvswitch",
        iommu_group=65,
        lost=False,
        max_payload=256,
        max_read_request=512,
        relaxed_ordering=True,
    ),
)


@pytest.mark.parametrize("described", HGX, ids=lambda one: str(one.key))
def test_the_hgx_is_joined_as_described(described: Fact) -> None:
    assert fact(node("hgx-h100"), type(described), described.key) == described


def test_the_array_and_its_mount_are_as_described() -> None:
    machine = node("server-raid")
    assert fact(machine, Array, "md0") == Array(
        key="md0",
        level="raid0",
        state="clean",
        members=("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"),
        wanted=4,
        faulty=(),
    )
    assert fact(machine, Disk, "sda2") == Disk(key="sda2", size=479_000_000_000 // 512 * 512, partition_of="sda")
    assert fact(machine, Mount, "/raid") == Mount(
        key="/raid", device="/dev/md0", fstype="xfs", read_only=False, size=15_355_000_000_000, free=9_000_000_000_000
    )


def files(machine: Recorded, folder: str, *names: str) -> list[str | None]:
    return [machine.read(f"sys/bus/pci/devices/{folder}/{name}") for name in names]


LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")


@pytest.mark.parametrize(
    ("change", "port", "gpu"),
    [
        ("", ["32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"], ["32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"]),
        (
            "[device.gpu0]\nwidth = 8",
            ["32.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "16"],
            ["32.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "16"],
        ),
        (
            '[device."gpu0.port"]\nspeed = 2.5',
            ["2.5 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"],
            ["2.5 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"],
        ),
        (
            f'[device."{PORT}"]\nmax_speed = 16\nmax_width = 8',
            ["16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "8"],
            ["16.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "16"],
        ),
        (
            f'[device."{GPU}"]\nlost = true',
            ["32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"],
            ["Unknown", "63", "Unknown", "255"],
        ),
    ],
)
def test_both_ends_of_a_link_say_how_it_is_trained(change: str, port: list[str], gpu: list[str]) -> None:
    machine = build(f"{SMALL}\n{change}")
    assert files(machine, PORT, *LINK) == port
    assert files(machine, GPU, *LINK) == gpu


ROOTS = """
[model.chip]
kind = "port"
id = "11f8:4128"
speed = 16
width = 2
second = "ast"

[[root]]
domain = [0, 3]
bus = [0x10]
slot = 0
switch = "chip"
ports = ["", "efa1"]
switches = [["pm9a3", ["", "efa1"]]]
integrated = ["h100"]
"""
PLACES = [
    "10:00.0",
    "10:01.0",
    "10:02.0",
    "10:03.0",
    "12:00.0",
    "13:00.0",
    "13:00.1",
    "14:00.0",
    "14:01.0",
    "15:00.0",
    "16:00.0",
    "16:00.1",
    "17:00.0",
    "17:01.0",
    "19:00.0",
]


def test_what_hangs_on_a_root_is_placed_as_firmware_counts() -> None:
    machine = build(ROOTS)
    assert machine.list("sys/bus/pci/devices") == [
        f"{domain}:{place}" for domain in ("0000", "0003") for place in PLACES
    ]
    empty = ["2.5 GT/s PCIe", "0", "32.0 GT/s PCIe", "16"]
    assert files(machine, "0003:10:00.0", *LINK) == empty
    assert files(machine, "0003:13:00.0", *LINK) == ["16.0 GT/s PCIe", "2", "16.0 GT/s PCIe", "2"]
    assert files(machine, "0003:10:03.0", *LINK) == ["32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"]
    nested = fact(machine, Pci, "0003:19:00.0")
    assert isinstance(nested, Pci)
    assert (nested.parent, nested.max_width, nested.width) == ("0003:17:01.0", 16, 2)


def test_made_up_ports_and_the_devices_below_them_contradict_each_other() -> None:
    machine = node("vm-p5")
    assert files(machine, "0000:46:04.0", *LINK) == ["2.5 GT/s PCIe", "1", "2.5 GT/s PCIe", "1"]
    assert files(machine, "0000:4b:00.0", *LINK) == ["32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16"]
    assert files(machine, "0000:bb:00.0", *LINK) == ["32.0 GT/s PCIe", "0", "32.0 GT/s PCIe", "16"]
    assert files(machine, "0000:4b:00.0", "aer_dev_correctable") == [None]


def test_a_device_can_be_given_what_firmware_and_drivers_say_of_it() -> None:
    machine = build(f"""{SMALL}
[device.gpu0]
busy_speed = 16
slot = "PCIE-5"
label = "GPU5"
driver = "vfio-pci"
numa = -1
errors = {{RxErr = 3, MalfTLP = 1, UnsupReq = 2}}
files = {{"power/control" = "auto\\n", label2 = ""}}
""")
    gpu = fact(machine, Pci, GPU)
    assert isinstance(gpu, Pci)
    assert (gpu.slot, gpu.label, gpu.driver, gpu.numa) == ("PCIE-5", "GPU5", "vfio-pci", None)
    assert files(machine, GPU, "power/control", "label2") == ["auto", ""]
    aer = files(machine, GPU, "aer_dev_correctable", "aer_dev_fatal", "aer_dev_nonfatal")
    assert [text.split("\n")[-1] for text in aer if text] == [
        "TOTAL_ERR_COR 3",
        "TOTAL_ERR_FATAL 1",
        "TOTAL_ERR_NONFATAL 2",
    ]
    (seen,) = machine.call("link_load", deadline=1)
    assert isinstance(seen, Observation)
    assert (seen.about, seen.quantity, seen.value, seen.busy) == (GPU, "link_speed", 16e9, True)


def test_virtual_functions_belong_to_their_physical_one() -> None:
    machine = build('[[root]]\nbus = [0x10]\nports = ["connectx6lx-dual"]\n[device.mlx5_1]\nvfs = 8')
    assert machine.list("sys/bus/pci/devices") == [
        "0000:10:01.0",
        *(f"0000:11:00.{number}" for number in range(8)),
        "0000:11:01.0",
        "0000:11:01.1",
    ]
    function = fact(machine, Pci, "0000:11:01.1")
    assert isinstance(function, Pci)
    assert (function.physfn, function.parent, function.driver) == ("0000:11:00.1", "0000:10:01.0", None)


def test_ports_can_be_down_slow_or_miss_a_partner() -> None:
    machine = build(
        """
[[root]]
bus = [0x10]
ports = ["connectx7", "connectx7-roce", "connectx7", "i226", "i226"]
device.mlx5_0.up = false
device.mlx5_1.up = false
device.mlx5_2 = {rate = 200, counters = {link_downed = 3, symbol_error = 4}}
device.eth1 = {rate = 1, partner = 1, counters = {rx_crc_errors = 5, carrier_changes = 6}}
device.eth2.enabled = false
""".replace("\ndevice.", "\n[device]\n", 1).replace("\ndevice.", "\n")
    )
    ports = [fact(machine, Port, f"mlx5_{number}/1") for number in range(3)]
    assert [(p.state, p.physical_state, p.rate) for p in ports if isinstance(p, Port)] == [
        ("DOWN", "Polling", 1.25e9),
        ("DOWN", "Disabled", 5e9),
        ("ACTIVE", "LinkUp", 25e9),
    ]
    nets = [fact(machine, Net, f"eth{number}") for number in range(3)]
    assert [(n.carrier, n.enabled, n.speed, n.partner_speed) for n in nets if isinstance(n, Net)] == [
        (False, True, None, None),
        (True, True, 125e6, 125e6),
        (None, False, None, None),
    ]
    observed = {(said.about, said.quantity): said.value for said in said_of(machine) if isinstance(said, Observation)}
    assert observed["mlx5_2/1", "link_downed"] == 3
    assert observed["eth1", "rx_crc_errors"] == 5
    assert observed["eth1", "carrier_changes"] == 6
