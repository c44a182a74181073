"""Ports have the same role, and their faults the same severity, whatever else of the node is broken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from bench.accuracy.edits import Edit, names_of, set_fields, together, without
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Net, Pci, Port, Rdma
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.fabric_ports import DOWN, gpus, nic, summaries

FABRIC = tuple(f"mlx5_{number}/1" for number in range(2, 10))


@cache
def node(name: str = "hgx-h100") -> HealthyNode:
    return node_of(name)


def report(*edits: Edit, name: str = "hgx-h100", site: Site | None = None) -> Report:
    records = together(*edits)(list(node(name).records))
    return evaluate(assemble(records, site or Site(), node(name).now, origin=node(name).origin))


def severities(found: Report, code: str) -> dict[str, str]:
    return {one.subject: one.severity for one in found.findings if one.code == code and one.subject in FABRIC}


def down(*ports: str) -> Edit:
    return together(*(set_fields(Port, port, state="DOWN", physical_state="Polling") for port in ports))


def half(*ports: str) -> Edit:
    return together(*(set_fields(Port, port, rate=25e9) for port in ports))


def removed_gpu() -> Edit:
    return without(names_of(node().snapshot, "0000:1b:00.0"))


@pytest.mark.parametrize("ports", [FABRIC[:1], FABRIC[:5], FABRIC])
@pytest.mark.parametrize("other", [together(), removed_gpu()])
def test_a_port_that_is_down(ports: Sequence[str], other: Edit) -> None:
    """One port, most ports and all ports, with all GPUs and beside a missing GPU."""
    assert severities(report(down(*ports), other), "nic-port-down") == dict.fromkeys(ports, "critical")


def test_a_slow_port() -> None:
    one = FABRIC[0]
    assert severities(report(half(one)), "nic-rate-low") == {one: "critical"}
    assert severities(report(half(one), down(*FABRIC[1:3])), "nic-rate-low") == {one: "critical"}


def test_all_ports_at_half_rate() -> None:
    """The machine type knows the rate. Otherwise nothing does, and coverage lists the ports."""
    listed = {one.subject for one in report(half(*FABRIC)).coverage.uncorroborated if "port rate" in one.quantities}
    assert listed.issuperset(FABRIC)
    known = [f"mlx5_{number}/1" for number in range(8)]
    found = report(half(*known), name="azure-nd-h100-v5")
    assert [(one.severity, one.basis) for one in found.findings if one.code == "nic-rate-low"] == [
        ("critical", "profile")
    ] * 8


def dual(number: int, first: str, second: str) -> list[Record]:
    """A card with two RoCE ports, each a function."""
    records: list[Record] = []
    for index, state in enumerate((first, second)):
        key, name = f"0000:{number + 1:02x}:00.{index}", f"mlx5_{2 * number + index}"
        physical = "LinkUp" if state == "ACTIVE" else "Disabled"
        records += [
            Pci(key=key, parent="pci0000:00", pci_class=0x020000, vendor=0x15B3, device=0x101D),
            Rdma(key=name, address=key, driver="mlx5_core", board_id="MT_0000000359"),
            Net(key=f"eth{2 * number + index}", address=key, link_type="ethernet", enabled=False, carrier=None),
            Port(
                key=f"{name}/1",
                device=name,
                state=state,
                physical_state=physical,
                link_layer="Ethernet",
                netdev=f"eth{2 * number + index}",
            ),
        ]
    return records


def test_second_ports_that_are_all_down_are_spare() -> None:
    cards = [record for number in range(8) for record in dual(number, "ACTIVE", "DOWN")]
    assert summaries(*gpus(8), *cards) == []
    cards = [record for number in range(8) for record in dual(number, "ACTIVE" if number else "DOWN", "DOWN")]
    assert summaries(*gpus(8), *cards) == [("nic-port-down", "mlx5_0/1", "critical")]


def test_a_second_port_of_which_the_others_work() -> None:
    cards = [record for number in range(8) for record in dual(number, "ACTIVE", "ACTIVE" if number else "DOWN")]
    assert summaries(*gpus(8), *cards) == [("nic-port-down", "mlx5_1/1", "critical")]


def test_infiniband_without_gpus() -> None:
    ports = [record for number in range(4) for record in nic(number, **(DOWN if number else {}))]
    assert {severity for _, _, severity in summaries(*ports)} == {"warning"}


def test_a_nic_is_not_moved_because_its_neighbours_are_down() -> None:
    """The fabric NICs of one processor are down, have no driver, do not answer, or are gone.

    Only a machine type tells a machine without all of its NICs from one that was built so.
    """
    site = Site(machine=(Machine(name="ours", source="here", product="SYS-821GE-TNHR", rdma=10),))
    there = FABRIC[4:]
    devices = [port.partition("/")[0] for port in there]
    addresses = [str(node().snapshot.of(Rdma)[name].address) for name in devices]
    faults = {
        "down": down(*there),
        "no driver": without([*devices, *there]),
        "no answer": together(*(set_fields(Pci, address, lost=True) for address in addresses)),
        "gone": without([name for address in addresses for name in names_of(node().snapshot, address)]),
    }
    for what, edit in faults.items():
        assert [one.message for one in report(edit, site=site).findings if one.code == "nic-numa-remote"] == [], what
