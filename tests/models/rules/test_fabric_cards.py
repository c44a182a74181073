"""Storage and management ports, virtual functions and sub-functions hide no missing card of the fabric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Node, Pci, Port, Rdma
from linkgauge.models.facts.records import Fact
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.present import present
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Machine, Site

CX7, CX6DX, BLUEFIELD_3 = 0x1021, 0x101D, 0xA2DC
# Buses of the machine's own cards; the numbers have no meaning.
COMPUTE = [f"0000:{bus}:00.0" for bus in ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")]
STORAGE = [f"0000:{bus}:00.{port}" for bus in ("29", "aa") for port in (0, 1)]


def node(vendor: str = "NVIDIA", product: str = "DGXH100") -> Node:
    return Node(key="node", vendor=vendor, product=product, virtual=False)


def nic(address: str, device: int = CX7, layer: str = "InfiniBand", physfn: str | None = None) -> list[Fact]:
    """A function with its RDMA device."""
    name = f"mlx5_{address}"
    pci = Pci(key=address, pci_class=0x020700, vendor=0x15B3, device=device, driver="mlx5_core", physfn=physfn)
    port = Port(key=f"{name}/1", device=name, state="ACTIVE", physical_state="LinkUp", rate=50e9, link_layer=layer)
    return [pci, Rdma(key=name, address=address, driver="mlx5_core"), port]


def sub_function(address: str, number: int) -> list[Fact]:
    """Linux shows the RDMA device of a sub-function below the function (networking/devlink/devlink-port.rst)."""
    return [Rdma(key=f"mlx5_sf{number}", address=address, driver="mlx5_core")]


def nics(addresses: Iterable[str], device: int = CX7, layer: str = "InfiniBand") -> list[Fact]:
    return [fact for address in addresses for fact in nic(address, device, layer)]


def found(*facts: Fact, site: Site | None = None, before: Sequence[Fact] = ()) -> list[Finding]:
    inventory = present(assemble([node(), *before], Site(), 1.0)) if before else None
    snapshot = assemble([node(), *facts], site or Site(), 2.0, inventory=inventory)
    return [one for one in evaluate(snapshot).findings if one.code == "nic-missing"]


def counts(findings: Sequence[Finding]) -> list[tuple[float | str | None, float | str | None]]:
    return [(one.observed, one.expected) for one in findings if one.subject == "node"]


MANAGEMENT = nics(["0000:05:00.0", "0000:05:00.1"], CX6DX, "Ethernet")
VIRTUAL = [fact for n in range(1, 9) for fact in nic(f"0000:29:08.{n % 8}", CX7 + 1, physfn=STORAGE[0])]
PARTS = [fact for n in range(8) for fact in sub_function(COMPUTE[0], n)]


@pytest.mark.parametrize(
    "others",
    [
        nics(STORAGE),
        nics(STORAGE, layer="Ethernet"),
        nics(["0000:29:00.0", "0000:aa:00.0"], layer="Ethernet"),
        MANAGEMENT,
        nics(["0000:29:00.0", "0000:aa:00.0", "0000:ab:00.0"], BLUEFIELD_3),
        VIRTUAL,
        PARTS,
        [*nics(STORAGE), *MANAGEMENT, *VIRTUAL, *PARTS],
        [],
    ],
)
@pytest.mark.parametrize("gone", [0, 1, 2, 4])
def test_each_missing_card_of_the_fabric_is_seen(others: list[Fact], gone: int) -> None:
    findings = found(*nics(COMPUTE[gone:]), *others)
    assert counts(findings) == ([(8 - gone, 8)] if gone else [])


def test_the_text_names_the_other_devices_and_cards_without_a_driver() -> None:
    pci, _, _ = nic(COMPUTE[1])
    (finding,) = found(*nics(COMPUTE[2:]), *nics(STORAGE), pci)
    assert finding.message == (
        "6 of the 8 RDMA devices of nvidia-dgx-h100 are there; 4 more are of another kind (storage, management); "
        f"without an RDMA device: {COMPUTE[1]}"
    )


def test_a_fabric_of_cards_with_two_devices() -> None:
    """Half of a card is missing: one device of 16."""
    cards = [f"0000:{bus}:00.{port}" for bus in range(10, 18) for port in (0, 1)]
    machine = Machine(name="ours", source="the order", product="DGXH100", rdma=16)
    assert counts(found(*nics(cards), site=Site(machine=(machine,)))) == []
    assert counts(found(*nics(cards[1:]), site=Site(machine=(machine,)))) == [(15, 16)]


def test_a_site_file_counts_all_devices() -> None:
    machine = Machine(name="ours", source="the order", product="DGXH100", rdma=10)
    site = Site(machine=(machine,))
    everything = [*nics(COMPUTE), *nics(["0000:29:00.0", "0000:29:00.1"])]
    assert counts(found(*everything, *VIRTUAL, *PARTS, site=site)) == []
    assert counts(found(*everything[:-3], *VIRTUAL, *PARTS, site=site)) == [(9, 10)]


def test_a_storage_card_that_was_there_before_is_one_finding_of_its_own() -> None:
    whole = [*nics(COMPUTE), *nics(STORAGE)]
    gone = found(*nics(COMPUTE), *nics(STORAGE[:2]), before=whole)
    assert [one.subject for one in gone] == STORAGE[2:3]  # both functions are one card
    gone = found(*nics(COMPUTE[1:]), *nics(STORAGE), before=whole)
    assert [one.subject for one in gone] == COMPUTE[:1]


def test_a_function_of_a_storage_card_hides_no_missing_card() -> None:
    """The card had two devices. Neither the device that is gone nor the other one counts for the fabric."""
    before = [*nics(COMPUTE[1:]), *nics(STORAGE)]
    findings = found(*nics(COMPUTE[1:]), *nics(STORAGE[1:]), before=before)
    assert counts(findings) == [(7, 8)]
    assert [one.subject for one in findings if one.subject != "node"] == STORAGE[:1]


def test_storage_cards_are_not_the_fabric_of_a_machine_that_lost_most_cards() -> None:
    """Two cards with two devices each are more than three of eight."""
    before = [*nics(COMPUTE[1:]), *nics(STORAGE)]
    findings = found(*nics(COMPUTE[5:]), *nics(STORAGE), before=before)
    assert counts(findings) == [(3, 8)]
    assert [one.subject for one in findings if one.subject != "node"] == COMPUTE[1:5]
    assert counts(found(*nics(COMPUTE[5:]), *nics(STORAGE), before=[*nics(COMPUTE), *nics(STORAGE)])) == []
    assert counts(found(*nics(STORAGE), before=before)) == [(0, 8)]
