from __future__ import annotations

import errno
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.host.entries import Entry, Folder, Link, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.network.net import read_link_modes, read_net
from tests.support.nodes.trees import tree, write
from tests.support.not_checked import refused, unreadable

CARD = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.1"
ETH0, ETH1, LO = (
    f"{CARD}/net/eth0",
    "sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth1",
    "sys/devices/virtual/net/lo",
)
DOWN = UnreadableFile(errno.EINVAL, "Invalid argument")
SHUT = UnreadableFile(errno.EACCES, "Permission denied")
BROKEN = UnreadableFile(errno.EIO, "Input/output error")

FILES: dict[str, Entry] = {
    "sys/class/net/bonding_masters": "bond0",
    "sys/class/net/eth0": Link(f"../../../{ETH0}"),
    "sys/class/net/eth1": Link(f"../../../{ETH1}"),
    "sys/class/net/lo": Link(f"../../../{LO}"),
    "sys/bus/pci/drivers/mlx5_core/bind": "",
    f"{CARD}/driver": Link("../../../../bus/pci/drivers/mlx5_core"),
    f"{ETH0}/device": Link("../.."),
    f"{ETH0}/type": "1",
    f"{ETH0}/flags": "0x1003",
    f"{ETH0}/speed": "100000",
    f"{ETH0}/duplex": "full",
    f"{ETH0}/carrier": "1",
    f"{ETH0}/mtu": "9000",
    f"{ETH0}/dev_port": "1",
    f"{ETH0}/carrier_changes": "3",
    f"{ETH0}/statistics/rx_errors": "7",
    f"{ETH0}/statistics/tx_errors": "0",
    f"{ETH0}/statistics/rx_crc_errors": "7",
    f"{ETH0}/statistics/rx_bytes": "18446744073709551615",
    f"{ETH0}/statistics/tx_bytes": "12",
    f"{ETH0}/statistics/rx_packets": "99",
    f"{ETH1}/type": "1",
    f"{ETH1}/flags": "0x1002",
    f"{ETH1}/speed": DOWN,
    f"{ETH1}/duplex": DOWN,
    f"{ETH1}/carrier": DOWN,
    f"{ETH1}/mtu": "1500",
    f"{LO}/type": "772",
    f"{LO}/flags": "0x9",
    f"{LO}/speed": DOWN,
    f"{LO}/mtu": "65536",
    f"{LO}/carrier_changes": "0",
}


def cites(folder: str, **files: str) -> dict[str, Evidence]:
    return {field: Evidence(f"{folder}/{name}", str(FILES[f"{folder}/{name}"])) for field, name in files.items()}


def counter(about: str, folder: str, name: str, unit: str, value: float) -> Observation:
    path = f"{folder}/{name}"
    quantity = name.rpartition("/")[2]
    evidence = Evidence(path, str(FILES[path]))
    return Observation(about=about, quantity=quantity, unit=unit, value=value, at=1000, evidence=evidence)


SAID: list[Record] = [
    Net(
        key="eth0",
        address="0000:11:00.1",
        driver="mlx5_core",
        speed=12.5e9,
        duplex="full",
        mtu=9000,
        carrier=True,
        enabled=True,
        link_type="ethernet",
        port=1,
        cites=cites(
            ETH0,
            link_type="type",
            enabled="flags",
            speed="speed",
            duplex="duplex",
            carrier="carrier",
            mtu="mtu",
            port="dev_port",
        ),
    ),
    counter("eth0", ETH0, "carrier_changes", "count", 3),
    counter("eth0", ETH0, "statistics/rx_errors", "count", 7),
    counter("eth0", ETH0, "statistics/tx_errors", "count", 0),
    counter("eth0", ETH0, "statistics/rx_crc_errors", "count", 7),
    counter("eth0", ETH0, "statistics/rx_bytes", "bytes", 2.0**64),
    counter("eth0", ETH0, "statistics/tx_bytes", "bytes", 12),
    Net(
        key="eth1",
        address="0000:00:03.0",
        mtu=1500,
        enabled=False,
        link_type="ethernet",
        cites=cites(ETH1, link_type="type", enabled="flags", mtu="mtu"),
    ),
    Net(
        key="lo",
        mtu=65536,
        enabled=True,
        link_type="loopback",
        cites=cites(LO, link_type="type", enabled="flags", mtu="mtu"),
    ),
]


def facts(said: list[Record]) -> list[Fact]:
    """What could be read, without where."""
    return [replace(fact, cites={}) for fact in said if isinstance(fact, Fact)]


def test_a_port_that_is_up_one_that_is_down_and_a_virtual_device() -> None:
    assert list(read_net(tree(FILES))) == SAID


def test_the_same_on_a_disk(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    said = list(read_net(Live(str(tmp_path))))
    assert [replace(each, at=1000) if isinstance(each, Observation) else each for each in said] == SAID


def test_no_network_devices() -> None:
    assert list(read_net(tree({}))) == []


def test_speeds_that_are_not_known() -> None:
    for text in ("-1", "65535", "4294967295", "0"):
        said = read_net(tree({f"{ETH1}/type": "1", f"{ETH1}/speed": text, "sys/class/net/e": Link(f"../../../{ETH1}")}))
        assert facts(list(said)) == [Net(key="e", address="0000:00:03.0", link_type="ethernet")]


def test_types_and_duplexes() -> None:
    devices = {"ib0": ("32", "unknown"), "sit0": ("776", "half")}
    files = {f"sys/class/net/{name}/type": kind for name, (kind, _) in devices.items()}
    files |= {f"sys/class/net/{name}/duplex": duplex for name, (_, duplex) in devices.items()}
    assert facts(list(read_net(tree(files)))) == [
        Net(key="ib0", link_type="infiniband"),
        Net(key="sit0", link_type="776", duplex="half"),
    ]


def test_what_is_refused_or_garbled_hides_nothing_else() -> None:
    broken: dict[str, Entry] = {
        f"{ETH0}/speed": BROKEN,
        f"{ETH0}/carrier": "yes",
        f"{ETH0}/flags": SHUT,
        f"{ETH0}/statistics/rx_errors": BROKEN,
        f"{ETH0}/statistics/tx_errors": "",
        "sys/class/net/eth1": Link(SHUT),
    }
    said = list(read_net(tree({**FILES, **broken})))
    counters = "Net.counters"
    assert [each for each in said if isinstance(each, NotChecked)] == [
        refused("Net", "eth1", "sys/class/net/eth1"),
        refused("Net.enabled", "eth0", f"{ETH0}/flags"),
        unreadable("Net.speed", "eth0", f"{ETH0}/speed"),
        unreadable("Net.carrier", "eth0", f"{ETH0}/carrier", "'yes' is neither 0 nor 1"),
        unreadable(
            counters, "eth0", f"{ETH0}/statistics/rx_errors", "Input/output error; 1 more counter is unreadable"
        ),
    ]
    left = replace(facts(SAID)[0], speed=None, carrier=None, enabled=None)
    assert facts(said) == [left, *facts(SAID[-1:])]
    kept = [each for each in SAID if isinstance(each, Observation) and each.quantity not in ("rx_errors", "tx_errors")]
    assert [each for each in said if isinstance(each, Observation)] == kept


def test_a_class_that_cannot_be_listed_and_names_that_cannot_be_printed() -> None:
    path, why = "sys/class/net", "Permission denied"
    shut = tree({"sys/class/net": Folder(SHUT)})
    assert list(read_net(shut)) == [
        NotChecked(what="Net", subject="node", reason=Reason.PERMISSION, path=path, detail=why, how="run as root")
    ]
    assert list(read_link_modes(shut)) == [
        NotChecked(
            what="Net.max_speed", subject="node", reason=Reason.PERMISSION, path=path, detail=why, how="run as root"
        )
    ]
    path, why = "sys/class/net", r"'\x1b[2J\udcff' is not a printable name"
    hostile = tree({"sys/class/net/\x1b[2J\udcff/type": "1"})
    assert list(read_net(hostile)) == [
        NotChecked(what="Net", subject="node", reason=Reason.UNREADABLE, path=path, detail=why)
    ]


def test_link_modes_are_asked_of_ethernet_hardware_only() -> None:
    able = Net(key="eth0", max_speed=50e9)
    unreadable: dict[str, Entry] = {"sys/class/net/eth2/type": BROKEN, "sys/class/net/ib0/type": "32"}
    calls: dict[tuple[str, ...], tuple[str, ...]] = {("ethtool", "eth0", "eth1"): (encode(able),)}
    assert list(read_link_modes(tree({**FILES, **unreadable}, calls))) == [able]
    assert list(read_link_modes(tree({f"{LO}/type": "772", "sys/class/net/lo": Link(f"../../../{LO}")}))) == []


TEXTS = st.text() | st.integers().map(str) | st.sampled_from((DOWN, SHUT, BROKEN, Link("")))


@given(st.dictionaries(st.sampled_from(sorted(FILES)), TEXTS))
def test_any_text_in_any_file(broken: dict[str, Entry]) -> None:
    said = list(read_net(tree({**FILES, **broken})))
    assert [decode(encode(each)) for each in said] == said
    nets = [each for each in said if isinstance(each, Net)]
    assert len(nets) == len({net.key for net in nets})
    assert all(net.speed is None or net.speed > 0 for net in nets)
    assert all(each.value >= 0 for each in said if isinstance(each, Observation))
