"""ibstat, ibstatus, ibv_devinfo, ibdev2netdev, rdma link and show_gids: whole, cut, and of rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Gid, Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import rdma_tools

SHARED = Path(__file__).parents[4] / "shared"

IBSTAT = """\
CA 'mlx5_2'
\tCA type: MT4129
\tNumber of ports: 2
\tFirmware version: 28.39.1002
\tHardware version: 0
\tNode GUID: 0x0000000000000002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 17
\t\tSM lid: 1
\t\tLink layer: InfiniBand
\tPort 2:
\t\tState: Initializing
\t\tPhysical state: LinkUp
\t\tRate: 40 (FDR10)
\t\tBase lid: 0
\t\tLink layer: InfiniBand
"""
IBSTATUS = """\
Infiniband device 'mlx5_0' port 1 status:
\tdefault gid:\t fe80:0000:0000:0000:0000:0000:0000:0001
\tbase lid:\t 0x1f
\tsm lid:\t\t 0x1
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 200 Gb/sec (4X HDR)
\tlink_layer:\t InfiniBand
"""
DEVINFO = """\
hca_id:\tmlx5_bond_0
\ttransport:\t\t\tInfiniBand (0)
\tfw_ver:\t\t\t\t22.36.1010
\tnode_guid:\t\t\t0000:0000:0000:0001
\tvendor_id:\t\t\t0x02c9
\tvendor_part_id:\t\t\t4125
\tboard_id:\t\t\tMT_0000000359
\tphys_port_cnt:\t\t\t1
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tmax_mtu:\t\t4096 (5)
\t\t\tsm_lid:\t\t\t0
\t\t\tport_lid:\t\t0
\t\t\tlink_layer:\t\tEthernet
\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t25.0 Gbps (32)
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0000:00ff:fe00:0001, RoCE v1
\t\t\tGID[  3]:\t\t::ffff:192.0.2.6, RoCE v2
\t\t\tGID[  4]:\t\t0000:0000:0000:0000:0000:0000:0000:0000, RoCE v2

hca_id:\trdmap16s27
\tfw_ver:\t\t\t\t0.0.0.0
\tvendor_id:\t\t\t0x1d0f
\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)
\t\t\tlink_layer:\t\tUnspecified
"""
NETDEVS = """\
0000:31:00.0 mlx5_0 (MT4123 - MCX653106A-HDAT) CX653106A HDR dual port fw 20.31.1014 port 1 (INIT  ) ==> ibs1 (Down)
mlx5_1 port 1 ==> eth2 (Up)
"""
LINKS = """\
link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth1
link mlx5_1/1 subnet_prefix fe80:0000:0000:0000 lid 7 sm_lid 1 lmc 0 state DOWN physical_state POLLING
2/1: rxe0/1: state ACTIVE physical_state LINK_UP netdev eth3
"""
GIDS = """\
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t1\tfe80:0000:0000:0000:0000:00ff:fe00:0001\t\t\tv2\teth1
mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:c000:0206\t192.0.2.6  \tv2\teth1
mlx5_0\t1\t5\t2001:0db8:0000:0000:0000:0000:0000:0001\t\t\tv1\teth1
n_gids_found=3
"""
SAMPLES = (IBSTAT, IBSTATUS, DEVINFO, NETDEVS, LINKS, GIDS)


def said(text: str) -> list[Record]:
    return list(rdma_tools.read(Part("rdma.txt", 1, text, 0.0)))


def fact(kind: type[Fact], text: str, key: str, **fields: tuple[int, object]) -> Fact:
    """A fact whose fields come with the numbers of the lines that say so."""
    lines = text.splitlines()
    cites = {name: Evidence(f"rdma.txt:{line}", lines[line - 1].strip()) for name, (line, _) in fields.items()}
    return kind(key=key, cites=cites, **{name: value for name, (_, value) in fields.items()})


READ: list[tuple[str, list[Fact]]] = [
    (
        IBSTAT,
        [
            fact(Rdma, IBSTAT, "mlx5_2", hca_type=(2, "MT4129"), firmware=(4, "28.39.1002")),
            fact(
                Port,
                IBSTAT,
                "mlx5_2/1",
                device=(7, "mlx5_2"),
                state=(8, "ACTIVE"),
                physical_state=(9, "LinkUp"),
                rate=(10, 50e9),
                lid=(11, 17),
                link_layer=(13, "InfiniBand"),
            ),
            fact(
                Port,
                IBSTAT,
                "mlx5_2/2",
                device=(14, "mlx5_2"),
                state=(15, "INIT"),
                physical_state=(16, "LinkUp"),
                rate=(17, 5e9),
                link_layer=(19, "InfiniBand"),
            ),
        ],
    ),
    (
        IBSTATUS,
        [
            fact(Rdma, IBSTATUS, "mlx5_0"),
            fact(
                Port,
                IBSTATUS,
                "mlx5_0/1",
                device=(1, "mlx5_0"),
                lid=(3, 31),
                state=(5, "DOWN"),
                physical_state=(6, "Disabled"),
                rate=(7, 25e9),
                lanes=(7, "4X HDR"),
                link_layer=(8, "InfiniBand"),
            ),
        ],
    ),
    (
        DEVINFO,
        [
            fact(Rdma, DEVINFO, "mlx5_bond_0", firmware=(3, "22.36.1010"), board_id=(7, "MT_0000000359")),
            fact(
                Port,
                DEVINFO,
                "mlx5_bond_0/1",
                device=(9, "mlx5_bond_0"),
                state=(10, "ACTIVE"),
                link_layer=(14, "Ethernet"),
                rate=(16, 12.5e9),
                physical_state=(17, "LinkUp"),
            ),
            fact(
                Gid,
                DEVINFO,
                "mlx5_bond_0/1/gid0",
                port=(18, "mlx5_bond_0/1"),
                index=(18, 0),
                version=(18, "RoCE v1"),
                scope=(18, "link-local"),
            ),
            fact(
                Gid,
                DEVINFO,
                "mlx5_bond_0/1/gid3",
                port=(19, "mlx5_bond_0/1"),
                index=(19, 3),
                version=(19, "RoCE v2"),
                scope=(19, "IPv4"),
            ),
            fact(Rdma, DEVINFO, "rdmap16s27", firmware=(23, "0.0.0.0"), driver=(24, "efa")),
            fact(
                Port,
                DEVINFO,
                "rdmap16s27/1",
                device=(25, "rdmap16s27"),
                state=(26, "ACTIVE"),
                link_layer=(27, "Unspecified"),
            ),
        ],
    ),
    (
        NETDEVS,
        [
            fact(
                Rdma, NETDEVS, "mlx5_0", address=(1, "0000:31:00.0"), hca_type=(1, "MT4123"), firmware=(1, "20.31.1014")
            ),
            fact(Port, NETDEVS, "mlx5_0/1", device=(1, "mlx5_0"), netdev=(1, "ibs1"), state=(1, "INIT")),
            fact(Rdma, NETDEVS, "mlx5_1"),
            fact(Port, NETDEVS, "mlx5_1/1", device=(2, "mlx5_1"), netdev=(2, "eth2")),
        ],
    ),
    (
        LINKS,
        [
            fact(
                Port,
                LINKS,
                "mlx5_0/1",
                physical_state=(1, "LinkUp"),
                device=(1, "mlx5_0"),
                netdev=(1, "eth1"),
                state=(1, "ACTIVE"),
            ),
            fact(Rdma, LINKS, "mlx5_0"),
            fact(
                Port,
                LINKS,
                "mlx5_1/1",
                lid=(2, 7),
                physical_state=(2, "Polling"),
                device=(2, "mlx5_1"),
                state=(2, "DOWN"),
            ),
            fact(Rdma, LINKS, "mlx5_1"),
            fact(
                Port,
                LINKS,
                "rxe0/1",
                physical_state=(3, "LinkUp"),
                device=(3, "rxe0"),
                netdev=(3, "eth3"),
                state=(3, "ACTIVE"),
            ),
            fact(Rdma, LINKS, "rxe0"),
        ],
    ),
    (
        GIDS,
        [
            fact(
                Gid,
                GIDS,
                "mlx5_0/1/gid1",
                port=(3, "mlx5_0/1"),
                index=(3, 1),
                version=(3, "RoCE v2"),
                scope=(3, "link-local"),
            ),
            fact(Rdma, GIDS, "mlx5_0"),
            fact(Port, GIDS, "mlx5_0/1", device=(3, "mlx5_0"), netdev=(3, "eth1")),
            fact(
                Gid,
                GIDS,
                "mlx5_0/1/gid3",
                port=(4, "mlx5_0/1"),
                index=(4, 3),
                version=(4, "RoCE v2"),
                scope=(4, "IPv4"),
            ),
            fact(
                Gid,
                GIDS,
                "mlx5_0/1/gid5",
                port=(5, "mlx5_0/1"),
                index=(5, 5),
                version=(5, "RoCE v1"),
                scope=(5, "global"),
            ),
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_outputs(text: str, expected: list[Fact]) -> None:
    assert recognise(text)
    assert said(text) == expected
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    assert said(indented) == expected


def test_the_devices_of_one_card() -> None:
    """In the order of their own GUIDs, of which nothing is kept; who shows no GUID of a card has no place on one."""
    guids = {
        "mlx5_7": ("0x00000000000000b0", "a0"),
        "mlx5_10": ("0x00000000000000a1", "a0"),
        "mlx5_9": ("0x00000000000000a0", "a0"),
        "mlx5_3": ("0x00000000000000c0", "c0"),
    }
    text = "".join(
        f"CA '{name}'\n\tNode GUID: {own}\n\tSystem image GUID: 0x00000000000000{card}\n"
        for name, (own, card) in guids.items()
    )
    facts = said(text + "CA 'mlx5_4'\n\tNode GUID: 0x00000000000000a3\n")
    places = {one.key: one.place for one in facts if isinstance(one, Rdma)}
    assert places == {"mlx5_9": 0, "mlx5_10": 1, "mlx5_7": 2, "mlx5_3": 0, "mlx5_4": None}
    lines = "".join(
        f"hca_id:\tmlx5_{at}\n\tnode_guid:\t{'0000:' * 3}000{at}\n\tsys_image_guid:\t{'0000:' * 3}0000\n"
        for at in (1, 0)
    )
    assert {one.key: one.place for one in said(lines) if isinstance(one, Rdma)} == {"mlx5_0": 0, "mlx5_1": 1}


@pytest.mark.parametrize("text", SAMPLES)
def test_an_output_that_was_cut(text: str) -> None:
    """What it has stays true."""
    whole = {one.key: one for one in said(text) if isinstance(one, Fact)}
    for end in (0, *(found.end() for found in re.finditer("\n", text))):
        for one in said(text[:end]):
            assert isinstance(one, Fact)
            assert all(getattr(whole[one.key], name) == getattr(one, name) for name in one.cites)


def test_a_beginning_that_was_cut() -> None:
    """Nobody knows whose port it is; its addresses say themselves which index they have."""
    text = DEVINFO[DEVINFO.index("\t\t\tphys_state") : DEVINFO.index("\nhca_id:\trdmap")]
    assert recognise(text)
    assert said(text) == [
        fact(Gid, text, "gid0", index=(2, 0), version=(2, "RoCE v1"), scope=(2, "link-local")),
        fact(Gid, text, "gid3", index=(3, 3), version=(3, "RoCE v2"), scope=(3, "IPv4")),
    ]


@pytest.mark.parametrize(
    ("line", "what", "why"),
    [
        ("State: 4!", "Port.state", "'4!' is not the state of a port"),
        ("Physical state: 5%", "Port.physical_state", "'5%' is not the state of a link"),
        ("Rate: fast", "Port.rate", "'fast' is not a rate"),
        ("Base lid: x", "Port.lid", "'x' is not a number"),
        ("mlx5_0 port 1 (X) ==> eth0 (Up)", "Port.state", "'X' is not the state of a port"),
        ("base lid: 0xx", "Port.lid", "'0xx' is not a hexadecimal number"),
    ],
)
def test_what_cannot_be_read(line: str, what: str, why: str) -> None:
    *_, lost = said(f"CA 'mlx5_0'\n\tPort 1:\n\t\t{line}")
    assert lost == NotChecked(what=what, subject="mlx5_0/1", reason=Reason.UNREADABLE, path="rdma.txt:3", detail=why)


@pytest.mark.parametrize("gid", ["febf::1", "FE80::1", "fe80:0000:0000:0000:0000:00ff:fe00:0001"])
def test_link_local_addresses(gid: str) -> None:
    (one,) = said(f"GID[  1]:\t{gid}, RoCE v2")
    assert isinstance(one, Gid)
    assert (one.index, one.scope, one.version) == (1, "link-local", "RoCE v2")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_none() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = [path.name for path in files if re.search(rdma_tools.BEGIN, path.read_text(errors="replace"), re.MULTILINE)]
    assert found == []


pieces = st.sampled_from(
    [line + "\n" for text in SAMPLES for line in text.splitlines()] + ["\t", ": ", "Port ", "GID[ "]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Rdma | Port | Gid | NotChecked)
        assert decode(encode(one)) == one


def test_devices_of_rdma_dev() -> None:
    text = "0: mlx5_0: node_type ca fw 28.39.1002 node_guid 1070:fd03:00aa:aaaa sys_image_guid 1070:fd03:00aa:aaaa"
    assert recognise(text)
    (one,) = rdma_tools.read(Part("f", 1, text))
    assert isinstance(one, Rdma)
    assert (one.key, one.firmware) == ("mlx5_0", "28.39.1002")
