"""ethtool and ip: whole, cut, and of rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Net, Pci
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import net_tools

SHARED = Path(__file__).parents[4] / "shared"
AT = 1795230000.0
ETHTOOL = """\
Settings for ens1f0np0:
\tSupported ports: [ FIBRE ]
\tSupported link modes:   1000baseKX/Full
\t                        100000baseCR4/Full
\t                        50000baseSR2/Full
\tSupported pause frame use: Symmetric
\tAdvertised link modes:  200000baseCR4/Full
\tLink partner advertised link modes:  25000baseCR/Full
\tLink partner advertised pause frame use: No
\tSpeed: 25000Mb/s
\tDuplex: Full
\tLink detected: yes
"""
DOWN = """\
Settings for eth7:
\tSupported link modes:   Not reported
\tSpeed: Unknown!
\tDuplex: Unknown! (255)
\tLink detected: no (No cable)
"""
DRIVER = """\
driver: mlx5_core
version: 5.15.0
firmware-version: 22.32.2004 (MT_0000000359)
expansion-rom-version:
bus-info: 0000:b3:00.1
supports-statistics: yes
"""
IP = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
4: eth1: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 9000 qdisc mq state DOWN mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    RX:  bytes packets errors dropped  missed   mcast
    5000000000     100      7       0       0       0
    TX:  bytes packets errors dropped carrier collsns
          4096       9      0       0       0       0
12: ib0@if3: <BROADCAST,MULTICAST> mtu 2044 qdisc noop state DOWN mode DEFAULT group default qlen 256
    link/infiniband 00:00 brd 00:ff
13: tun0: <POINTOPOINT,UP,LOWER_UP> mtu 1500 qdisc fq state UNKNOWN
    link/none
"""
SAMPLES = (ETHTOOL, DOWN, DRIVER, IP)


def said(text: str) -> list[Record]:
    return list(net_tools.read(Part("net.txt", 1, text, AT)))


def fact(kind: type[Fact], text: str, key: str, **fields: tuple[int, object]) -> Fact:
    """A fact whose fields come with the numbers of the lines that say so."""
    lines = text.splitlines()
    cites = {name: Evidence(f"net.txt:{line}", lines[line - 1].strip()) for name, (line, _) in fields.items()}
    return kind(key=key, cites=cites, **{name: value for name, (_, value) in fields.items()})


def counted(line: int, quantity: str, value: float) -> Observation:
    return Observation(
        about="eth1",
        quantity=quantity,
        unit="bytes" if quantity.endswith("bytes") else "count",
        value=value,
        at=AT,
        evidence=Evidence(f"net.txt:{line}", IP.splitlines()[line - 1].strip()),
    )


READ: list[tuple[str, list[Record]]] = [
    (
        ETHTOOL,
        [
            fact(
                Net,
                ETHTOOL,
                "ens1f0np0",
                speed=(10, 3.125e9),
                duplex=(11, "full"),
                carrier=(12, True),
                max_speed=(4, 12.5e9),
                partner_speed=(8, 3.125e9),
            )
        ],
    ),
    (DOWN, [fact(Net, DOWN, "eth7", carrier=(5, False))]),
    (DRIVER, [fact(Pci, DRIVER, "0000:b3:00.1", driver=(5, "mlx5_core"))]),
    (
        IP,
        [
            counted(6, "rx_bytes", 5e9),
            counted(6, "rx_errors", 7.0),
            counted(8, "tx_bytes", 4096.0),
            counted(8, "tx_errors", 0.0),
            fact(Net, IP, "lo", enabled=(1, True), carrier=(1, True), mtu=(1, 65536), link_type=(2, "loopback")),
            fact(Net, IP, "eth1", enabled=(3, True), carrier=(3, False), mtu=(3, 9000), link_type=(4, "ethernet")),
            fact(Net, IP, "ib0", enabled=(9, False), mtu=(9, 2044), link_type=(10, "infiniband")),
            fact(Net, IP, "tun0", enabled=(11, True), carrier=(11, True), mtu=(11, 1500)),
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_outputs(text: str, expected: list[Record]) -> None:
    assert recognise(text)
    assert said(text) == expected


@pytest.mark.parametrize("text", SAMPLES)
def test_an_output_that_was_cut(text: str) -> None:
    """What it has stays true; of a list of modes, the fastest that is left."""
    whole = {one.key: one for one in said(text) if isinstance(one, Fact)}
    for end in (0, *(found.end() for found in re.finditer("\n", text))):
        for one in said(text[:end]):
            if isinstance(one, Observation):
                assert one in said(text)
            elif isinstance(one, Fact):
                kept = [name for name in one.cites if not name.endswith("_speed")]
                assert all(getattr(whole[one.key], name) == getattr(one, name) for name in kept)


def test_two_devices_of_ethtool() -> None:
    """The lists of one are not those of the other; what -i prints in between is of neither."""
    one, function, other = said(f"{DOWN}{DRIVER}{ETHTOOL}")
    assert isinstance(one, Net)
    assert isinstance(function, Pci)
    assert isinstance(other, Net)
    assert (one.key, one.max_speed, function.driver) == ("eth7", None, "mlx5_core")
    assert (other.key, other.max_speed, other.carrier) == ("ens1f0np0", 12.5e9, True)


@pytest.mark.parametrize(
    "line",
    ["driver: mlx5_core", "1: eth0: mtu 1500", "Settings for the job:", "bus-info: 0000:b3:00.1", "Speed: 100Mb/s", ""],
)
def test_what_is_no_beginning(line: str) -> None:
    assert not re.search(net_tools.BEGIN, line, re.MULTILINE)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_none() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = [path.name for path in files if re.search(net_tools.BEGIN, path.read_text(errors="replace"), re.MULTILINE)]
    assert found == []


pieces = st.sampled_from(
    [line + "\n" for text in SAMPLES for line in text.splitlines()] + ["\t", ": ", "bytes ", "Supported link modes: "]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Net | Pci | Observation)
        assert decode(encode(one)) == one


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("NIC statistics:\n     rx_packets: 5\n     Speed: 25000Mb/s\n", "ethtool -S"),
        ("\tIdentifier                                : 0x11 (QSFP28)\n\tSpeed: 25000Mb/s\n", "ethtool -m"),
    ],
)
def test_outputs_without_a_device_are_not_read(text: str, tool: str) -> None:
    """Nor taken for more of the device before them."""
    (lost,) = said(text)
    assert isinstance(lost, NotChecked)
    assert (lost.what, lost.subject) == (tool, "net.txt")
    (device,) = (one for one in said(DOWN + text) if isinstance(one, Net))
    assert device.speed is None


def test_the_device_in_the_name_of_a_file() -> None:
    """Sosreports name their files after the commands; ethtool -i alone does not say whose driver it tells of."""
    told = list(net_tools.read(Part("sos/sos_commands/networking/ethtool_-i_ens1f0np0", 1, DRIVER, AT)))
    nets = [(one.key, one.address, one.driver) for one in told if isinstance(one, Net)]
    assert nets == [("ens1f0np0", "0000:b3:00.1", "mlx5_core")]
