"""Ports that were up before: the inventory shows that a cable belongs there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.machine import Net, Node, Pci
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.inventory import Inventory, accepted_now, advanced
from linkgauge.models.inventory.present import present
from tests.support.nodes.gpu_facts import BARE
from tests.support.nodes.small_nodes import bridge, report_of, snapshot_of

CARD = "0000:41:00.0"


def node(carrier: bool, enabled: bool = True, device: int = 0x1572) -> list[Record]:
    """A node with an Ethernet card without RDMA."""
    return [
        BARE,
        bridge("0000:40:01.0", "pci0000:40"),
        Pci(key=CARD, parent="0000:40:01.0", pci_class=0x020000, vendor=0x8086, device=device),
        Net(key="eth1", address=CARD, link_type="ethernet", carrier=carrier, enabled=enabled, speed=1.25e9),
    ]


def before(records: list[Record], accepted: bool = False) -> Inventory:
    inventory = present(snapshot_of(records))
    return accepted_now(inventory) if accepted else inventory


def down(inventory: Inventory | None, enabled: bool = True) -> list[tuple[str, str, str | None]]:
    found = report_of(node(carrier=False, enabled=enabled), inventory=inventory).findings
    return [(one.subject, one.severity, one.basis) for one in found if one.code == "nic-port-down"]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_port_that_was_up(accepted: bool) -> None:
    assert down(before(node(carrier=True), accepted)) == [("eth1", "warning", "baseline")]


def test_a_port_that_was_never_up() -> None:
    assert down(None) == [("eth1", "info", None)]
    assert down(before(node(carrier=False))) == [("eth1", "info", None)]


def test_a_port_that_an_operator_switched_off() -> None:
    assert down(before(node(carrier=True)), enabled=False) == []


def test_a_boot_with_the_port_down_ends_nothing() -> None:
    reference = advanced(before(node(carrier=True)), replace(before(node(carrier=False)), taken_at=200.0))
    assert down(reference) == [("eth1", "warning", "baseline")]
    accepted = before(node(carrier=False), accepted=True)
    assert down(accepted) == [("eth1", "info", None)]


def test_a_guest_has_ports_too() -> None:
    guest = [Node(key="node", virtual=True) if one is BARE else one for one in node(carrier=True)]
    (item,) = [one for one in present(snapshot_of(guest)).devices if one.kind == "port"]
    assert (item.key, item.state, item.rate) == ("eth1", "ACTIVE", 1.25e9)
