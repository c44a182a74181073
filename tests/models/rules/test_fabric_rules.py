"""Packet sizes, congestion and places of NICs and GPUs: faults, and what healthy machines show."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Net, Node, Pci, Port
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from linkgauge.models.site.schema import Machine, Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import net_tools, rdma_tools
from tests.support.nodes.broken_facts import PLACES, roce
from tests.support.nodes.gpu_facts import BARE, NOW, address, counter, findings, function, gpu, report_of, with_fields

Summary = tuple[str, str]


def summaries(records: Sequence[Record], code: str, *past: Observation, site: Site | None = None) -> list[Summary]:
    return [(one.subject, one.severity) for one in findings(records, *past, site=site) if one.code == code]


ODD = ("mlx5_3/1", "warning")


@pytest.mark.parametrize(
    ("mtus", "expected"),
    [
        ((9000, 9000, 9000, 1500), [ODD]),
        ((4200, 4200, 4200, 9000), []),  # RDMA sends 4096 bytes with both
        ((9000, 9000, 1500, 1500), []),  # two networks
        ((9000, 1500), []),
        ((4092, 4092, 4092, 9000), [ODD]),
        ((1500,) * 4, [("mlx5_0/1", "info")]),
        ((1500,) * 2, []),  # nothing shows that the ports belong to a fabric
    ],
)
def test_packets(mtus: tuple[int, ...], expected: list[Summary]) -> None:
    assert summaries(roce(*mtus), "nic-mtu") == expected


def test_the_message_of_an_odd_one() -> None:
    (found,) = (one for one in findings(roce(9000, 9000, 9000, 1500)) if one.code == "nic-mtu")
    assert found.message == (
        "port mlx5_3/1 sends packets of 1024 bytes (MTU 1500 of eth3), 3 equal ports of this node 4096"
    )
    assert (found.expected, found.observed, found.confidence) == (4096, 1024, "likely")


@pytest.mark.parametrize(
    "fields",
    [
        {Net: {"speed": 3.125e9}, Port: {"rate": 3.125e9}},  # 25 Gb/s
        {Port: {"link_layer": "InfiniBand", "netdev": None}},
        {Pci: {"device": 0x1017}},  # another NIC
        {Port: {"state": "DOWN"}},
        {Net: {"speed": 12.5e9}, Port: {"rate": 12.5e9}},  # another network
    ],
)
def test_ports_of_another_kind_are_not_compared(fields: dict[type, dict[str, object]]) -> None:
    alike, other = roce(9000, 9000, 9000), roce(9000, 9000, 9000, 1500)[-4:]
    changed = [with_fields([one], one.key, **fields.get(type(one), {}))[0] for one in other if isinstance(one, Fact)]
    assert summaries([*alike, *changed], "nic-mtu") == []


def test_packets_from_dumps() -> None:
    """ibv_devinfo has the packet size of RDMA, ip has the maximum of Ethernet."""
    port = "        board_id: MT_0\n        port: 1\n            state: PORT_ACTIVE (4)\n"
    rate = "            active_width: 4X (2)\n            active_speed: 25.0 Gbps (32)\n"
    text = "".join(
        f"hca_id: mlx5_{n}\n{port}            active_mtu: {size}\n{rate}            link_layer: Ethernet\n"
        for n, size in enumerate(("4096 (5)", "4096 (5)", "1024 (3)"))
    )
    records = list(rdma_tools.read(Part("ibv.txt", 1, text)))
    assert [one.mtu for one in records if isinstance(one, Port)] == [4096, 4096, 1024]
    found = [one for one in findings(records, origin="dumps") if one.code == "nic-mtu"]
    assert [(one.subject, one.evidence[0].text) for one in found] == [("mlx5_2/1", "active_mtu: 1024 (3)")]
    (net,) = net_tools.read(Part("ip.txt", 1, "2: eth0: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc mq\n"))
    assert isinstance(net, Net)
    assert net.mtu == 9000


QUIET = roce(9000)


def waited(now: float, before: float, seconds: float = 10.0, what: str = "port_xmit_wait") -> list[Summary]:
    past = counter("mlx5_0/1", what, before, NOW - seconds)
    return summaries([*QUIET, counter("mlx5_0/1", what, now)], "nic-congestion", past)


BUSY = [("mlx5_0/1", "info")]


@pytest.mark.parametrize(
    ("what", "now", "before", "seconds", "expected"),
    [
        ("port_xmit_wait", 1.3e10, 0, 10, BUSY),  # ticks of 4 bytes at 50 GB/s: 10.4 %
        ("port_xmit_wait", 1.2e10, 0, 10, []),
        ("port_xmit_wait", 1e15, 1e15, 10, []),  # long ago
        ("port_xmit_wait", 0, 1e12, 10, []),  # counted anew
        ("port_xmit_wait", 1e15, 0, 1, []),  # too short a time
        ("rp_cnp_handled", 210_000, 0, 10, BUSY),
        ("rp_cnp_handled", 190_000, 0, 10, []),
    ],
)
def test_waiting(what: str, now: float, before: float, seconds: float, expected: list[Summary]) -> None:
    assert waited(now, before, seconds, what) == expected


def test_without_earlier_values_there_is_no_finding() -> None:
    assert summaries([*QUIET, counter("mlx5_0/1", "port_xmit_wait", 1e15)], "nic-congestion") == []
    assert "nic-congestion" not in report_of([*QUIET, counter("mlx5_0/1", "port_xmit_wait", 1e15)]).checks


@given(st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_waiting_less_is_never_busier(before: int, rise: int, more: int) -> None:
    assert len(waited(before + rise, before)) <= len(waited(before + rise + more, before))


def site(**fields: object) -> Site:
    return Site(machine=(Machine(name="ours", source="the order", gpu="NVIDIA H100*", **fields),))  # type: ignore[arg-type]


def modules(*order: int) -> list[Record]:
    """GPUs with these module ids, in the order of their addresses."""
    gpus = [gpu(number, module_id=module) for number, module in enumerate(order)]
    return [BARE, *(function(number) for number in range(len(order))), *gpus]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (modules(1, 2, 3, 4), []),
        (modules(1, 2, 4, 3), [("node", "warning")]),
        (modules(1, 2, 3), []),  # one is missing, which is another finding
        ([*modules(1, 2), function(8), gpu(8, module_id=3)], [(address(8), "warning")]),
        (modules(9, 10, 11, 12), []),  # modules without a known number
    ],
)
def test_places_of_gpus(records: list[Record], expected: list[Summary]) -> None:
    assert summaries(records, "device-misplaced", site=site(gpu_places=PLACES)) == expected
    assert summaries(records, "device-misplaced", site=site()) == []


def test_the_message_of_a_swap() -> None:
    (found,) = findings(modules(1, 2, 4, 3), site=site(gpu_places=PLACES))
    assert found.message == (
        "not where ours has it: GPU module 3 is at 0000:13:00.0, not at 0000:12:00.0, GPU module 4 is at 0000:12:00.0, "
        "not at 0000:13:00.0"
    )
    assert (found.basis, found.confidence) == ("site", "certain")


def test_buses_that_are_numbered_otherwise() -> None:
    other = {module: at.replace("0000:1", "0000:7") for module, at in PLACES.items()}
    report = report_of(modules(1, 2, 3, 4), site=site(gpu_places=other))
    assert [one.code for one in report.findings] == []
    assert [one for one in report.not_checked if one.what == "places of devices"] == [
        NotChecked(
            what="places of devices",
            subject="node",
            reason=Reason.OTHER,
            detail="hardly any PCI address matches ours: the firmware numbers the buses differently",
            how="write the machine type anew: linkgauge profile",
        )
    ]


def test_places_of_nics() -> None:
    records = [*modules(1, 2, 3, 4), *roce(9000, 9000, 9000)]
    records = [one for one in records if not isinstance(one, Node)] + [BARE]
    places = tuple(f"0000:{bus:02x}:00.0" for bus in (0x40, 0x41, 0x42))
    assert summaries(records, "device-misplaced", site=site(nic_places=places)) == []
    moved = (*places[:2], "0000:50:00.0")
    assert summaries(records, "device-misplaced", site=site(nic_places=moved)) == [("0000:42:00.0", "warning")]
    assert (
        summaries(records, "device-misplaced", site=site(nic_places=(*places, "0000:50:00.0"))) == []
    )  # one is missing
