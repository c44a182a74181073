"""Rules on facts alone: unusual healthy machines, and faults that look healthy."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Array, Event, Net, Node, Nvme, Pci
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.fabric_ports import BRIDGE, DOWN, GPU, GPU_0, HERE, NOW, PORT_0, findings, gpus, nic, summaries


@pytest.mark.parametrize(
    ("others", "count", "severity"),
    [(7, 8, "critical"), (9, 8, "warning"), (7, 0, "warning"), (1, 8, "info"), (0, 8, "info")],
)
def test_a_port_is_as_grave_as_its_role(others: int, count: int, severity: str) -> None:
    """A port for each GPU is none to spare; of ten beside eight GPUs, two may be for storage."""
    ports = [record for number in range(1, others + 1) for record in nic(number)]
    assert summaries(*gpus(count), *ports, *nic(0, **DOWN)) == [("nic-port-down", "mlx5_0/1", severity)]
    slow = summaries(*gpus(count), *ports, *nic(0, rate=25e9))
    assert slow == ([("nic-rate-low", "mlx5_0/1", severity)] if others > 1 else [])


def test_a_fabric_that_is_down_whole() -> None:
    ports = [record for number in range(4) for record in nic(number, **DOWN)]
    assert {severity for _, _, severity in summaries(*gpus(8), *ports)} == {"critical"}
    assert {severity for _, _, severity in summaries(*ports)} == {"warning"}


def test_no_subnet_manager() -> None:
    assert summaries(*nic(0, state="INIT")) == [("nic-port-down", "mlx5_0/1", "critical")]


def test_the_site_knows_its_fabric() -> None:
    site = Site(fabric=("mlx5_0",))
    assert summaries(*nic(0, **DOWN), site=site) == [("nic-port-down", "mlx5_0/1", "critical")]


def ethernet(number: int, carrier: bool, **fields: object) -> Net:
    return Net(
        key=f"eth{number}",
        address="0000:05:00.0",
        link_type="ethernet",
        enabled=True,
        carrier=carrier,
        port=0,
        cites={"carrier": HERE},
        **fields,  # type: ignore[arg-type]
    )


def test_representors_and_virtual_functions_are_no_ports() -> None:
    card = Pci(key="0000:05:00.0", parent="pci0000:00", pci_class=0x020000, vendor=0x15B3, device=0x101D)
    up = [ethernet(number, True, port_name=f"pf0vf{number}") for number in range(4)]
    assert summaries(card, *up, ethernet(9, False, port_name="pf0vf9")) == []
    virtual = replace(card, physfn="0000:05:00.1")
    assert summaries(virtual, *up[:3], ethernet(9, False)) == []
    assert summaries(card, ethernet(9, False)) == [("nic-port-down", "eth9", "info")]


def test_roce_is_as_fast_as_its_network_device_says() -> None:
    """Some kernels give RDMA no more than 100 Gb/s."""
    net = ethernet(0, True, speed=50e9, max_speed=50e9, partner_speed=50e9)
    port = nic(5, link_layer="Ethernet", rate=12.5e9, netdev="eth0")
    assert summaries(*port, net) == []
    assert summaries(*port, replace(net, speed=25e9)) == [("nic-rate-low", "mlx5_5/1", "info")]


def test_a_split_slot_of_a_desktop() -> None:
    halves = [
        BRIDGE,
        replace(BRIDGE, key="0000:00:01.1"),
        replace(GPU, width=8),
        replace(GPU, key="0000:02:00.0", parent="0000:00:01.1", width=8),
    ]
    assert {severity for _, _, severity in summaries(*halves)} == {"info"}
    amd = [replace(one, vendor=0x1022) if one.pci_class == 0x060400 else one for one in halves]
    assert {severity for _, _, severity in summaries(*amd)} == {"critical"}


def test_the_one_lane_of_a_grace_machine() -> None:
    switch = Pci(key=GPU_0, parent=PORT_0, pci_class=0x060400, vendor=0x15B3, width=1, max_width=16, max_speed=64e9)
    assert summaries(replace(BRIDGE, vendor=0x10DE), switch) == [("pcie-link-narrow", GPU_0, "info")]


def test_virtual_machines() -> None:
    guest = Node(key="node", virtual=True, hypervisor="KVM")
    ena = Pci(key="0000:00:05.0", parent="pci0000:00", pci_class=0x020000, vendor=0x1D0F, device=0xEC20)
    lone = replace(GPU, parent="pci0000:00", key="0000:00:06.0")
    assert summaries(guest, ena) == []
    assert summaries(guest, lone) == [("pcie-topology-hidden", "node", "info")]
    assert summaries(guest, lone, ena) == [("pcie-topology-hidden", "node", "info")]
    (found,) = findings(guest, lone)
    assert found.remedy == "Nothing: a single GPU has no peers."
    other = replace(lone, key="0000:00:07.0")
    assert summaries(guest, lone, other) == [("pcie-topology-hidden", "node", "warning")]
    assert summaries(guest, lone, ena, site=Site(trust_virtual_links=True)) == []
    unplaced = [replace(one, parent=None) for one in (lone, other)]  # of a list without the ports above them
    assert evaluate(assemble((guest, *unplaced), Site(), NOW, origin="dumps")).findings == ()


@pytest.mark.parametrize(
    ("driver", "severity"),
    [
        ("nvidia", None),
        (None, "critical"),
        ("nouveau", "warning"),
        ("vfio-pci", "info"),
        ("nvgrace_gpu_vfio_pci", "info"),
    ],
)
def test_drivers_of_gpus(driver: str | None, severity: str | None) -> None:
    expected = [("gpu-driver-failed", GPU_0, severity)] if severity else []
    assert summaries(BRIDGE, replace(GPU, driver=driver)) == expected
    amd = replace(GPU, driver=driver, vendor=0x1002)
    assert summaries(BRIDGE, amd) == []


def counter(value: float, at: float) -> Observation:
    return Observation(about=GPU_0, quantity="aer_correctable", unit="count", value=value, at=at, evidence=HERE)


def test_a_storm_of_correctable_errors() -> None:
    booted = Node(key="node", booted=NOW - 3600)
    assert summaries(BRIDGE, GPU, booted, counter(53e6, NOW)) == [("pcie-errors", GPU_0, "warning")]
    assert summaries(BRIDGE, GPU, booted, counter(400, NOW)) == []  # 6.7 a minute over 16 lanes
    assert summaries(BRIDGE, GPU, counter(53e6, NOW)) == []  # the start of the count is not known
    booted = Node(key="node", booted=NOW - 7 * 86_400)
    assert summaries(BRIDGE, GPU, booted, counter(53e6, NOW), past=(counter(53e6 - 7, NOW - 90_000),)) == []


def test_one_function_that_would_not_say_hides_no_other() -> None:
    lost = NotChecked(what="Pci", subject="0000:09:00.0", reason=Reason.UNREADABLE, detail="Input/output error")
    report = evaluate(assemble([BRIDGE, replace(GPU, width=8), lost], Site(), NOW))
    assert [(one.code, one.subject) for one in report.findings] == [("pcie-link-narrow", GPU_0)]
    assert report.checks["pcie-link-narrow"] is False
    assert evaluate(assemble([BRIDGE, GPU, lost], Site(), NOW)).verdict == "unknown"


def test_an_xid_of_long_ago_is_history() -> None:
    event = Event(key="a", kind="xid", code=79, subject=GPU_0, text="x", at=NOW - 60)
    (finding,) = findings(BRIDGE, GPU, event, replace(event, key="b", at=NOW - 30))
    assert (finding.severity, finding.since) == ("critical", "2033-05-18T03:32:50Z")
    assert "2 times" in finding.message
    assert summaries(BRIDGE, GPU, replace(event, at=NOW - 90000)) == [("gpu-xid", GPU_0, "info")]
    assert summaries(BRIDGE, GPU, replace(event, code=43)) == []
    assert summaries(BRIDGE, GPU, replace(event, code=9999)) == [("gpu-xid", GPU_0, "warning")]


def test_arrays() -> None:
    whole = Array(key="md0", level="raid0", state="clean", members=("sda", "sdb"), wanted=2, faulty=())
    assert summaries(whole) == []
    for broken in (replace(whole, state="broken"), replace(whole, faulty=("sdb",)), replace(whole, members=("sda",))):
        assert summaries(broken) == [("storage-degraded", "md0", "critical")]
    assert summaries(replace(whole, level=None, state="inactive", wanted=0, members=())) == []
    assert summaries(Nvme(key="nvme0", model="a disk", state="dead")) == [("storage-degraded", "nvme0", "critical")]


def test_counts_need_more_than_a_name() -> None:
    """GPUs of one name come in machines of four and of eight."""
    four = [Gpu(key=f"gpu{number}", name="NVIDIA A100-SXM4-80GB") for number in range(4)]
    assert summaries(*four) == []
    site = Site(machine=(Machine(name="ours", source="the order", gpu="*A100*", gpus=8, rdma=2),))
    assert summaries(*four, site=site) == [("gpu-missing", "node", "critical"), ("nic-missing", "node", "critical")]
