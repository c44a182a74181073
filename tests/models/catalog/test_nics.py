"""The catalog of NICs, and their ports in the topology."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.catalog.nics import Nic, nic_of, nics
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Net, Pci, Port, Rdma
from linkgauge.models.facts.records import Fact
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Machine, Site

AT = "0000:41:00.0"


@pytest.mark.parametrize("one", nics(), ids=[nic.name for nic in nics()])
def test_a_row_says_where_it_comes_from(one: Nic) -> None:
    assert one.source
    assert not one.source.endswith(".")
    assert one.grade in ("efa", "slingshot", "omnipath")
    assert one.rate in (None, 12.5e9, 25e9, 50e9)
    for number in one.ids:
        vendor, device = (int(part, 16) for part in number.split(":"))
        assert nic_of(Pci(key=AT, vendor=vendor, device=device)) is one


def test_numbers_are_those_of_one_row() -> None:
    assert set(Counter(number for nic in nics() for number in nic.ids).values()) == {1}
    assert nic_of(Pci(key=AT, vendor=0x15B3, device=0x1021)) is None  # ConnectX-7: of 200 or of 400 Gb/s
    assert nic_of(Pci(key=AT, vendor=0x15B3)) is None
    assert nic_of(Pci(key=AT)) is None


def nic(vendor: int, device: int, *, layer: str | None = None, rdma: bool = True, **net: object) -> list[Fact]:
    """A NIC of one port at 25 GB/s; with fields of a network device, that too."""
    said: list[Fact] = [Pci(key=AT, pci_class=0x020000, vendor=vendor, device=device)]
    name = "eth0" if net else None
    if rdma:
        said.append(Rdma(key="rdma0", address=AT))
        said.append(Port(key="rdma0/1", device="rdma0", state="ACTIVE", rate=25e9, link_layer=layer, netdev=name))
    return [*said, Net(key="eth0", address=AT, **net)] if net else said  # type: ignore[arg-type]


MELLANOX, CASSINI, OPA, EFA = (0x15B3, 0x1021), (0x17DB, 0x0501), (0x8086, 0x24F0), (0x1D0F, 0xEFA1)


def ports(facts: list[Fact], machine: Machine | None = None) -> list[tuple[str, str, float | None, float | None]]:
    built = assemble(facts, Site(machine=(machine,) if machine else ()), 0.0).topology
    return [(link.id, link.grade, link.rated, link.trained) for link in built.links if link.kind == "port"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (nic(*MELLANOX, layer="InfiniBand"), ("infiniband", None, 25e9)),
        # The slower of both ends. For RoCE the network device has the correct rate.
        (
            nic(*MELLANOX, layer="Ethernet", speed=12.5e9, max_speed=50e9, partner_speed=25e9),
            ("roce", 25e9, 12.5e9),
        ),
        (nic(*MELLANOX, layer="Ethernet", speed=25e9, max_speed=50e9), ("roce", None, 25e9)),
        (nic(*MELLANOX, layer="Ethernet", max_speed=50e9), ("roce", None, 25e9)),
        (nic(*OPA, layer="InfiniBand"), ("omnipath", 12.5e9, 25e9)),
        (nic(*EFA, layer="Unspecified"), ("efa", None, 25e9)),
        (nic(0x1234, 0x5678, layer="Unspecified"), ("", None, 25e9)),
    ],
)
def test_an_rdma_port(facts: list[Fact], expected: tuple[str, float | None, float | None]) -> None:
    assert ports(facts) == [(f"{AT}>rdma0/1", *expected)]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (nic(*CASSINI, rdma=False, speed=25e9, link_type="ethernet"), ("slingshot", 25e9, 25e9)),
        (nic(*MELLANOX, rdma=False, speed=1.25e8, max_speed=25e9, partner_speed=1.25e8), ("ethernet", 1.25e8, 1.25e8)),
        (nic(*MELLANOX, rdma=False, speed=25e9, link_type="infiniband"), ("", None, 25e9)),
    ],
)
def test_a_network_device(facts: list[Fact], expected: tuple[str, float | None, float | None]) -> None:
    assert ports(facts) == [(f"{AT}>eth0", *expected)]


def test_the_machine_type_tells_what_the_port_does_not() -> None:
    said = [Pci(key="0000:01:00.0", pci_class=0x030200, vendor=0x10DE, device=0x2330), *nic(*EFA)]
    machine = Machine(name="ours", source="the order", gpu="H100*", rdma=1, rdma_rate=12.5e9)
    assert ports(said, machine) == [(f"{AT}>rdma0/1", "efa", 12.5e9, 25e9)]
    # With more NICs than the type has, some are for storage. It is not known which.
    more = [*said, Rdma(key="rdma1", address="0000:42:00.0")]
    assert ports(more, machine) == [(f"{AT}>rdma0/1", "efa", None, 25e9)]


rates = st.none() | st.sampled_from([1.25e8, 12.5e9, 25e9, 50e9])


@given(rates, rates, rates, st.sampled_from(["InfiniBand", "Ethernet", "Unspecified", None]), st.booleans())
def test_no_port_is_rated_above_either_end(
    speed: float | None, most: float | None, partner: float | None, layer: str | None, rdma: bool
) -> None:
    said = nic(*MELLANOX, layer=layer, rdma=rdma, speed=speed, max_speed=most, partner_speed=partner)
    ((_, _, rated, _),) = ports(said)
    contradicts = speed is not None and partner is not None and partner < speed
    assert rated == (None if most is None or partner is None or contradicts else min(most, partner))


@pytest.mark.parametrize(
    ("driver", "speed", "most", "partner", "rated"),
    [
        # The 10 Gb/s of a 100 Gb/s partner are bit 12 of the old modes, and bit 12 of the new ones is 200 Gb/s.
        ("mlx5_core", 12.5e9, 25e9, 25e9, None),
        ("mlx5_core", 5e9, 12.5e9, 25e9, None),  # above the port's own maximum
        ("mlx5_core", 12.5e9, 12.5e9, 3.125e9, None),  # below the running speed
        ("mlx5_core", 3.125e9, 12.5e9, 12.5e9, 12.5e9),
        ("ice", 12.5e9, 12.5e9, 3.125e9, None),
        ("ice", 5e9, 12.5e9, 25e9, 12.5e9),
        ("bnxt_en", 12.5e9, 25e9, 25e9, 25e9),
    ],
)
def test_partner_modes_that_contradict_the_port_rate_nothing(
    driver: str, speed: float, most: float, partner: float, rated: float | None
) -> None:
    """mlx5e_ethtool_get_link_ksettings (drivers/net/ethernet/mellanox/mlx5/core/en_ethtool.c)."""
    state: dict[str, Any] = {"carrier": True, "enabled": True, "link_type": "ethernet"}
    said = nic(*MELLANOX, rdma=False, driver=driver, speed=speed, max_speed=most, partner_speed=partner, **state)
    assert ports(said) == [(f"{AT}>eth0", "ethernet", rated, speed)]
    report = evaluate(assemble(said, Site(), 0.0))
    assert [one.code for one in report.findings if one.code == "nic-rate-low"] == (
        ["nic-rate-low"] if rated and speed < rated else []
    )
