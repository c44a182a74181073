"""A NIC that writes to itself: its PCIe links and its port rate are judged, the cable is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.records import Flow, Record
from linkgauge.models.graph.flow_paths import hops_of
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Rate, Site
from tests.support.nodes.loopback_node import NIC, PORT, ROOT, node
from tests.support.nodes.small_nodes import bridge, function, observation, report_of, snapshot_of, with_fields

ITSELF, WIRE = Flow("loopback", ("pci0000:00", "mlx5_0")), Flow("write", ("mlx5_0", "mlx5_0/1"), 1 << 20)


def report(reached: float, width: int = 16, site: Site | None = None) -> Report:
    return report_of([*node(width), observation(ITSELF, "hca_loopback", reached)], site)


def test_what_a_healthy_adapter_reaches() -> None:
    """The port limits it, as in published loopbacks. The link to the cable is not on the path."""
    (level,) = report(48e9).levels
    (expected,) = level.expected
    assert report(48e9).findings == ()
    assert expected.bottleneck == f"{NIC}>itself"
    assert expected.typical == pytest.approx(0.95 * 50e9, rel=0.01)
    kinds = [hop.links[0].kind for hop in hops_of(snapshot_of(node()).topology, ITSELF)]
    assert "port" not in kinds
    assert kinds.count("pcie") == 2 or kinds.count("pcie") == 1
    assert kinds[-1] == "loopback"


def test_one_that_is_slow() -> None:
    (found,) = report(20e9).findings
    assert (found.code, found.subject, found.basis) == ("bandwidth-low", "pci0000:00-mlx5_0", "capability")


def test_a_narrow_slot_explains_it() -> None:
    (found,) = report(13.9e9, width=4).findings
    assert (found.code, found.subject) == ("pcie-link-narrow", NIC)
    assert found.explains == ("bandwidth-low:pci0000:00-mlx5_0",)


@pytest.mark.parametrize("reached", [48e9, 60e9])
def test_it_clears_no_port(reached: float) -> None:
    """The cable is slow and the adapter is fast."""
    records = [*node(), observation(ITSELF, "hca_loopback", reached), observation(WIRE, "rate", 12e9)]
    (found,) = report_of(records).findings
    assert (found.code, found.subject) == ("bandwidth-low", WIRE.subject)
    down = [*node(port=replace(PORT, rate=12.5e9)), observation(ITSELF, "hca_loopback", reached)]
    assert [one for one in report_of(down).findings if one.code == "bandwidth-low"] == []


def test_of_a_port_of_unknown_rate_nothing_is_expected() -> None:
    records = with_fields(node(port=replace(PORT, rate=None)), NIC, device=0x9999)
    (level,) = report_of([*records, observation(ITSELF, "hca_loopback", 5e9)]).levels
    assert level.expected == ()


def test_a_site_may_say_what_sockets_reach() -> None:
    """Processors limit TCP as often as links do, so the catalog has no rate."""
    flow = Flow("tcp", ("host", "eth0"))
    card: list[Record] = [
        bridge(ROOT, "pci0000:00"),
        replace(function(NIC, ROOT), pci_class=0x020000, vendor=0x8086, driver="ice"),
    ]
    net = Net(key="eth0", address=NIC, speed=12.5e9, max_speed=12.5e9, partner_speed=12.5e9, link_type="ethernet")
    records = [*card, net, observation(flow, "rate", 2e9)]
    assert report_of(records).levels[0].expected == ()
    rate = Rate(op="tcp", ends=("host", "eth*"), low=3e9, typical=4e9, high=5e9, source="ours")
    (found,) = report_of(records, Site(rates=(rate,))).findings
    assert (found.code, found.subject, found.observed, found.expected) == ("bandwidth-low", "host-eth0", 2e9, 4e9)
