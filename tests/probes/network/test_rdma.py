from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net, Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.host.entries import Entry, Folder, Link, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.network.net import read_net
from linkgauge.probes.network.rdma import read_rdma
from tests.support.nodes.trees import tree
from tests.support.not_checked import refused, unreadable
from tests.support.ttar import unpack

PROCFS = Path(__file__).parents[4] / "shared/data/procfs/procfs_hw_subset.ttar"

CARD = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0"
MLX, EFA = f"{CARD}/infiniband/mlx5_0", "sys/devices/pci0000:20/0000:20:01.0/infiniband/rdmap32s1"
RXE = "sys/devices/virtual/infiniband/rxe0"
UNUSED = UnreadableFile(errno.EINVAL, "Invalid argument")
SHUT = UnreadableFile(errno.EACCES, "Permission denied")
BROKEN = UnreadableFile(errno.EIO, "Input/output error")
NO_COUNTER = UnreadableFile(errno.EOPNOTSUPP, "Operation not supported")


def port(folder: str, state: str, physical: str, rate: str, lid: str, layer: str) -> dict[str, Entry]:
    files = {"state": state, "phys_state": physical, "rate": rate, "lid": lid, "link_layer": layer}
    return {f"{folder}/{name}": text for name, text in files.items()}


FILES: dict[str, Entry] = {
    "sys/class/infiniband/mlx5_0": Link(f"../../../{MLX}"),
    "sys/class/infiniband/rdmap32s1": Link(f"../../../{EFA}"),
    "sys/class/infiniband/rxe0": Link(f"../../../{RXE}"),
    "sys/bus/pci/drivers/mlx5_core/bind": "",
    f"{CARD}/driver": Link("../../../../bus/pci/drivers/mlx5_core"),
    f"{CARD}/net/ib0/dev_port": "0",
    f"{MLX}/device": Link("../.."),
    f"{MLX}/board_id": "MT_0000000838",
    f"{MLX}/hca_type": "MT4129",
    f"{MLX}/fw_ver": "28.39.1002",
    f"{MLX}/node_guid": "0a7f:bc12:45ef:d23b",
    f"{MLX}/node_desc": "node17 mlx5_0",
    **port(f"{MLX}/ports/1", "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)", "0x1a", "InfiniBand"),
    f"{MLX}/ports/1/gids/0": "fe80:0000:0000:0000:0a7f:bc12:45ef:d23b",
    f"{MLX}/ports/1/gid_attrs/ndevs/0": UNUSED,
    f"{MLX}/ports/1/counters/link_downed": "2",
    f"{MLX}/ports/1/counters/port_rcv_data": "100",
    f"{MLX}/ports/1/counters/port_xmit_data": "18446744073709551615",
    f"{MLX}/ports/1/hw_counters/lifespan": "10",
    f"{MLX}/ports/1/hw_counters/out_of_sequence": "5",
    f"{EFA}/fw_ver": "0.0.0.0",
    **port(f"{EFA}/ports/1", "4: ACTIVE", "5: LinkUp", "100 Gb/sec (4X EDR)", "0x0", "Unknown"),
    f"{EFA}/ports/1/gid_attrs/ndevs/0": UNUSED,
    f"{EFA}/ports/1/hw_counters/rx_bytes": "77",
    f"{EFA}/ports/1/hw_counters/rx_pkts": "3",  # says nothing of the link
    f"{RXE}/fw_ver": "",
    f"{RXE}/parent": "eth0",
    **port(f"{RXE}/ports/1", "1: DOWN", "3: Disabled", "2.5 Gb/sec (1X SDR)", "0x0", "Ethernet"),
    f"{RXE}/ports/1/gid_attrs/ndevs/0": "eth0",
}


def cites(folder: str, **files: str) -> dict[str, Evidence]:
    return {field: Evidence(f"{folder}/{name}", str(FILES[f"{folder}/{name}"])) for field, name in files.items()}


def port_cites(folder: str) -> dict[str, Evidence]:
    files = {"state": "state", "physical_state": "phys_state", "rate": "rate", "lid": "lid", "link_layer": "link_layer"}
    return cites(folder, **files)


def counter(about: str, path: str, unit: str, value: float) -> Observation:
    quantity, evidence = path.rpartition("/")[2], Evidence(path, str(FILES[path]))
    return Observation(about=about, quantity=quantity, unit=unit, value=value, at=1000, evidence=evidence)


SAID: list[Record] = [
    Rdma(
        key="mlx5_0",
        address="0000:11:00.0",
        driver="mlx5_core",
        board_id="MT_0000000838",
        hca_type="MT4129",
        firmware="28.39.1002",
        cites=cites(MLX, board_id="board_id", hca_type="hca_type", firmware="fw_ver"),
    ),
    Port(
        key="mlx5_0/1",
        device="mlx5_0",
        state="ACTIVE",
        physical_state="LinkUp",
        rate=50e9,
        lanes="4X NDR",
        lid=26,
        link_layer="InfiniBand",
        netdev="ib0",
        cites=port_cites(f"{MLX}/ports/1"),
    ),
    counter("mlx5_0/1", f"{MLX}/ports/1/counters/link_downed", "count", 2),
    counter("mlx5_0/1", f"{MLX}/ports/1/counters/port_rcv_data", "bytes", 400),
    counter("mlx5_0/1", f"{MLX}/ports/1/counters/port_xmit_data", "bytes", 2.0**66),
    counter("mlx5_0/1", f"{MLX}/ports/1/hw_counters/out_of_sequence", "count", 5),
    Rdma(key="rdmap32s1", address="0000:20:01.0", firmware="0.0.0.0", cites=cites(EFA, firmware="fw_ver")),
    Port(
        key="rdmap32s1/1",
        device="rdmap32s1",
        state="ACTIVE",
        physical_state="LinkUp",
        rate=12.5e9,
        lanes="4X EDR",
        link_layer="Unspecified",
        cites=port_cites(f"{EFA}/ports/1"),
    ),
    counter("rdmap32s1/1", f"{EFA}/ports/1/hw_counters/rx_bytes", "bytes", 77),
    Rdma(key="rxe0", cites=cites(RXE, firmware="fw_ver")),
    Port(
        key="rxe0/1",
        device="rxe0",
        state="DOWN",
        physical_state="Disabled",
        rate=312.5e6,
        lanes="1X SDR",
        link_layer="Ethernet",
        netdev="eth0",
        cites=port_cites(f"{RXE}/ports/1"),
    ),
]


def said_of(broken: dict[str, Entry]) -> list[Record]:
    return list(read_rdma(tree({**FILES, **broken})))


def missed(said: Iterable[Record]) -> list[NotChecked]:
    return [each for each in said if isinstance(each, NotChecked)]


def ports(said: Iterable[Record]) -> dict[str, Port]:
    return {each.key: each for each in said if isinstance(each, Port)}


def test_infiniband_efa_and_a_soft_device() -> None:
    assert said_of({}) == SAID


def test_no_rdma_devices() -> None:
    assert list(read_rdma(tree({}))) == []


@pytest.mark.parametrize(
    ("text", "rate", "lanes"),
    [
        ("800 Gb/sec (4X XDR)", 100e9, "4X XDR"),
        ("40 Gb/sec (4X FDR10)", 5e9, "4X FDR10"),
        ("20 Gb/sec (4X DDR)", 2.5e9, "4X DDR"),
        ("0 Gb/sec (4X)", None, "4X"),
    ],
)
def test_rates(text: str, rate: float | None, lanes: str) -> None:
    read = ports(said_of({f"{MLX}/ports/1/rate": text}))["mlx5_0/1"]
    assert (read.rate, read.lanes) == (rate, lanes)


@pytest.mark.parametrize("text", ["10 Gb/sec (4X SDR)", "10 Gb/sec (4X)", "2.5 Gb/sec (1X SDR)"])
def test_a_speed_that_the_kernel_does_not_know_is_no_rate(text: str) -> None:
    """Linux before 5.11 shows NDR as SDR (rate_show of drivers/infiniband/core/sysfs.c, "default to SDR")."""
    said = said_of({f"{MLX}/ports/1/rate": text})
    assert (ports(said)["mlx5_0/1"].rate, ports(said)["mlx5_0/1"].lanes) == (None, None)
    (gap,) = missed(said)
    assert (gap.what, gap.subject, gap.reason) == ("Port.rate", "mlx5_0/1", Reason.NOT_SUPPORTED)
    assert gap.detail == f"the kernel shows {text}, as for each speed that it does not know (NDR, XDR)"


@pytest.mark.parametrize(
    ("other", "rate"),
    [
        ({}, 1.25e9),
        ({"state": "1: DOWN"}, None),
        ({"rate": "10 Gb/sec (4X SDR)"}, None),
        ({"hca_type": "MT4123"}, None),  # this type has speeds that the kernel knows
    ],
)
def test_a_port_that_runs_at_sdr_beside_equal_ports(other: dict[str, str], rate: float | None) -> None:
    beside = "sys/devices/pci0000:30/0000:30:01.0/infiniband/mlx5_1"
    files = port(f"{beside}/ports/1", "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)", "0x1b", "InfiniBand")
    files |= {f"{beside}/hca_type": "MT4129", "sys/class/infiniband/mlx5_1": Link(f"/{beside}")}
    places = {"hca_type": f"{beside}/hca_type"}
    files |= {places.get(name, f"{beside}/ports/1/{name}"): text for name, text in other.items()}
    said = said_of({f"{MLX}/ports/1/rate": "10 Gb/sec (4X SDR)", **files})
    assert ports(said)["mlx5_0/1"].rate == rate


def test_states_that_the_driver_does_not_know() -> None:
    said = said_of({f"{MLX}/ports/1/state": "9: UNKNOWN", f"{MLX}/ports/1/phys_state": "0: <unknown>"})
    read = ports(said)["mlx5_0/1"]
    assert (read.state, read.physical_state, missed(said)) == (None, None, [])


def two_ports(first: dict[str, Entry]) -> dict[str, Entry]:
    other = port(f"{MLX}/ports/2", "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)", "0x0", "InfiniBand")
    return {**other, f"{CARD}/net/ib1/dev_port": "1", **first}


@pytest.mark.parametrize(
    ("files", "netdev"),
    [
        ({f"{CARD}/net/ib0/dev_port": "3"}, "ib0"),  # the only device of the only port, however its driver counts
        ({f"{CARD}/net/vf0/dev_port": "0"}, None),  # two of one number: nobody says which
        (two_ports({}), "ib0"),
        (two_ports({f"{CARD}/net/ib0/dev_port": "1", f"{CARD}/net/ib1/dev_port": "0"}), "ib1"),
        ({f"{MLX}/ports/1/link_layer": "Ethernet", f"{MLX}/ports/1/gid_attrs/ndevs/2": "bond0"}, "ib0"),
        (
            {
                f"{MLX}/ports/1/link_layer": "Ethernet",
                f"{MLX}/ports/1/gid_attrs/ndevs/1": UNUSED,
                f"{MLX}/ports/1/gid_attrs/ndevs/2": "bond0",
            },
            "bond0",
        ),
    ],
)
def test_the_network_device_of_a_port(files: dict[str, Entry], netdev: str | None) -> None:
    assert ports(said_of(files))["mlx5_0/1"].netdev == netdev


def gaps(first: str) -> list[NotChecked]:
    """What is said of the refused and the garbled."""
    return [
        unreadable("Rdma.board_id", "mlx5_0", f"{MLX}/board_id", r"'\x1b[31m' is not a line of text"),
        unreadable("Port.state", "mlx5_0/1", f"{first}/state", "'ACTIVE' is not a number and its name"),
        unreadable("Port.rate", "mlx5_0/1", f"{first}/rate", "'fast' is not a rate"),
        refused("Port.netdev", "mlx5_0/1", f"{first}/gid_attrs/ndevs/0"),
        unreadable(
            "Port.counters",
            "mlx5_0/1",
            f"{first}/counters/link_downed",
            "'many' is not a number; 1 more counter is unreadable",
        ),
        unreadable("Port.hw_counters", "rdmap32s1/1", f"{EFA}/ports/1/hw_counters"),
        refused("Port", "rxe0", f"{RXE}/ports"),
    ]


def test_what_is_refused_or_garbled_hides_nothing_else() -> None:
    first = f"{MLX}/ports/1"
    said = said_of(
        {
            f"{MLX}/board_id": "\x1b[31m",
            f"{first}/state": "ACTIVE",
            f"{first}/rate": "fast",
            f"{first}/link_layer": "Ethernet",
            f"{first}/gid_attrs/ndevs/0": SHUT,
            f"{first}/counters/link_downed": "many",
            f"{first}/counters/port_rcv_data": BROKEN,
            f"{EFA}/ports/1/hw_counters": Folder(BROKEN),
            f"{RXE}/ports": Folder(SHUT),
        }
    )
    assert missed(said) == gaps(first)
    read = ports(said)["mlx5_0/1"]
    left = Port(key="mlx5_0/1", device="mlx5_0", physical_state="LinkUp", lid=26, link_layer="Ethernet")
    assert replace(read, cites={}) == left
    counted = [(each.about, each.quantity) for each in said if isinstance(each, Observation)]
    assert counted == [("mlx5_0/1", "port_xmit_data"), ("mlx5_0/1", "out_of_sequence")]


def test_a_state_and_a_rate_that_are_not_there_are_missed() -> None:
    folder = "sys/class/infiniband/mlx4_0/ports/2"
    files: dict[str, Entry] = {f"{folder}/phys_state": "2: Polling", f"{folder}/lid": "0x0"}
    assert missed(read_rdma(tree(files))) == [
        NotChecked(
            what="Port.state", subject="mlx4_0/2", reason=Reason.NOT_INSTALLED, detail=f"{folder}/state is not there"
        ),
        NotChecked(
            what="Port.rate", subject="mlx4_0/2", reason=Reason.NOT_INSTALLED, detail=f"{folder}/rate is not there"
        ),
    ]


def test_a_device_that_does_not_count_is_not_missed() -> None:
    counters = f"{MLX}/ports/1/counters"
    said = said_of(
        {
            f"{counters}/link_downed": "N/A (no PMA)",
            f"{counters}/port_rcv_data": NO_COUNTER,
            f"{counters}/port_xmit_data": NO_COUNTER,
        }
    )
    assert missed(said) == []
    assert said == [each for each in SAID if not (isinstance(each, Observation) and counters in each.evidence.source)]


def test_a_class_that_cannot_be_listed() -> None:
    path, why = "sys/class/infiniband", "Permission denied"
    shut = tree({"sys/class/infiniband": Folder(SHUT)})
    assert list(read_rdma(shut)) == [
        NotChecked(what="Rdma", subject="node", reason=Reason.PERMISSION, path=path, detail=why, how="run as root")
    ]


def test_nothing_that_identifies_a_machine_is_read() -> None:
    identities = [text for path, text in FILES.items() if "guid" in path or "gids" in path or "node_desc" in path]
    lines = "\n".join(encode(each) for each in said_of({}))
    assert identities
    assert not [text for text in identities if str(text) in lines]


TEXTS = st.text() | st.integers().map(str) | st.sampled_from((UNUSED, SHUT, BROKEN, Link(""), Folder()))


@given(st.dictionaries(st.sampled_from(sorted(FILES)), TEXTS))
def test_any_text_in_any_file(broken: dict[str, Entry]) -> None:
    said = said_of(broken)
    assert [decode(encode(each)) for each in said] == said
    assert all(each.rate is None or each.rate > 0 for each in ports(said).values())
    assert all(each.value >= 0 for each in said if isinstance(each, Observation))


def test_machines_of_others(tmp_path: Path) -> None:
    if not PROCFS.exists():
        pytest.skip("needs ../shared/data/procfs, recorded files of prometheus/procfs")
    unpack(PROCFS, tmp_path)
    host = Live(str(tmp_path / "fixtures"))
    said = [*read_net(host), *read_rdma(host)]
    assert missed(said) == []
    counters = [each for each in said if isinstance(each, Observation)]
    assert sum(each.value for each in counters if each.quantity == "link_downed") == 0
    assert [replace(each, cites={}) for each in said if isinstance(each, Fact)] == [
        Net(key="eth0", speed=125e6, duplex="full", mtu=1500, carrier=True, enabled=True, link_type="ethernet"),
        Rdma(
            key="hfi1_0",
            firmware="1.27.0",
            board_id="HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter",
        ),
        active("hfi1_0", 1, 12.5e9, "4X EDR"),
        Rdma(key="mlx4_0", board_id="SM_1141000001000", hca_type="MT4099", firmware="2.31.5050"),
        active("mlx4_0", 1, 5e9, "4X QDR"),
        active("mlx4_0", 2, 5e9, "4X QDR"),
        Rdma(key="mlx5_0", board_id="SM_2001000001034", hca_type="MT4118", firmware="14.28.2006"),
        replace(active("mlx5_0", 1, 3.125e9, "1X EDR"), physical_state="ACTIVE"),  # as it stands there
    ]


def active(device: str, number: int, rate: float, lanes: str) -> Port:
    return Port(
        key=f"{device}/{number}",
        device=device,
        state="ACTIVE",
        physical_state="LinkUp",
        rate=rate,
        lanes=lanes,
        link_layer="InfiniBand",
    )
