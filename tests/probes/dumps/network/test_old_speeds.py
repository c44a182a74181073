"""Ports that run at a speed that no switch of today has: one pair of wires of the cable is broken."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

ETHTOOL = (
    "Settings for {name}:\n\tSupported link modes:   10baseT/Full\n\t                        100baseT/Full\n"
    "\t                        {most}baseT/Full\n\tSpeed: {speed}Mb/s\n\tDuplex: Full\n\tLink detected: {link}\n"
)


def text(speed: int, most: int = 1000, name: str = "enp14s0", link: str = "yes") -> str:
    return ETHTOOL.format(name=name, most=most, speed=speed, link=link)


def found(some: str) -> set[tuple[str, str, str]]:
    return {(one.code, one.severity, one.subject) for one in report_of(some).findings}


@pytest.mark.parametrize("most", [1000, 2500, 10000])
@pytest.mark.parametrize("speed", [10, 100])
def test_the_only_port(speed: int, most: int) -> None:
    assert found(text(speed, most)) == {("nic-rate-low", "warning", "enp14s0")}
    down = text(1000, name="enp15s0", link="no").replace("1000Mb/s", "Unknown!")
    assert found(text(speed, most) + down) == {("nic-rate-low", "warning", "enp14s0")}


@pytest.mark.parametrize("speed", [10, 100])
def test_a_port_beside_a_faster_one_can_be_for_management(speed: int) -> None:
    beside = text(1000, name="enp15s0")
    assert found(text(speed) + beside) == {("nic-rate-low", "info", "enp14s0")}


def test_a_partner_without_gigabit() -> None:
    partner = "\tLink partner advertised link modes:  10baseT/Full\n\t                        100baseT/Full\n"
    assert found(text(100).replace("\tSpeed", partner + "\tSpeed")) == {("nic-rate-low", "info", "enp14s0")}


@pytest.mark.parametrize(("speed", "most"), [(1000, 1000), (2500, 2500), (100, 100)])
def test_the_fastest_mode(speed: int, most: int) -> None:
    assert found(text(speed, most)) == set()


@pytest.mark.parametrize("name", ["bmc0", "usb0"])
def test_management_ports(name: str) -> None:
    assert found(text(100, name=name)) == {("nic-rate-low", "info", name)}


def test_a_port_beside_an_rdma_port() -> None:
    rdma = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n"
    assert found(rdma + "\n" + text(100)) == {("nic-rate-low", "info", "enp14s0")}


def test_a_port_of_another_product_at_its_fastest_mode() -> None:
    ports = "".join(text(10000, 10000, name=f"eno{number}") for number in (1, 2, 3))
    assert found(ports + text(1000, name="eno4")) == set()
