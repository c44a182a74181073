"""Lines about ports without the name of a driver: the last state counts, and a port that flaps is a finding."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in

DOWNS = (
    "{p}: NIC Link is DOWN",
    "{p}: link down",
    "{p} link down",
    "{p}: Link is Down",
    "{p} (Int switch port: 7) (phyId: 15) Link DOWN.",
    "igb: {p} NIC Link is Down",
)
UPS = (
    "{p}: NIC Link is Up 100 Gbps, Flow Control: RX/TX",
    "{p}: link up",
    "{p} (Int switch port: 7) (phyId: 15) Link Up at 1000 mbps full duplex",
    "IPv6: ADDRCONF(NETDEV_CHANGE): {p}: link becomes ready",
)
PORTS = ("eth3", "ens1f0np0", "enp65s0f1", "hsn0")
CARRIER = ("systemd-networkd[812]: {p}: Lost carrier", "systemd-networkd[812]: {p}: Gained carrier")
BOND = (
    "bond0: (slave {p}): link status definitely down, disabling slave",
    "bond0: (slave {p}): link status definitely up, 25000 Mbps full duplex",
)
OLD_BOND = (
    "bond0: link status definitely down for interface {p}, disabling it",
    "bond0: link status definitely up for interface {p}, 25000 Mbps full duplex",
)


def text(*lines: str, port: str = "eth3") -> str:
    """A log with one line in seven seconds."""
    return "".join(f"[ {7200 + 7 * n}.100000] {line.format(p=port)}\n" for n, line in enumerate(lines))


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("down", DOWNS)
def test_down_is_the_last_state(down: str, port: str) -> None:
    expected = [("nic-port-down", "warning", port)]
    assert found_in(f"{down.format(p=port)}\n") == expected
    assert found_in(text(down, port=port)) == expected
    assert found_in(f"The log says `{down.format(p=port)}` and no more.\n") == expected


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("up", UPS)
@pytest.mark.parametrize("down", DOWNS)
def test_up_is_the_last_state(down: str, up: str, port: str) -> None:
    assert found_in(text(down, up, port=port)) == []
    assert found_in(text(up, port=port)) == []


@pytest.mark.parametrize("down", DOWNS)
@pytest.mark.parametrize("up", UPS)
def test_a_port_that_flaps(down: str, up: str) -> None:
    assert ("nic-port-flapping", "warning", "eth3") in found_in(text(down, up, down, up, down, up))


@pytest.mark.parametrize(("down", "up", "once"), [(*CARRIER, "info"), (*BOND, "warning"), (*OLD_BOND, "warning")])
def test_members_and_carriers(down: str, up: str, once: str) -> None:
    assert found_in(text(down)) == [("nic-port-down", once, "eth3")]
    assert found_in(text(down, up)) == [("nic-port-down", "info", "eth3")]
    assert found_in(text(down, up, down, up, down, up)) == [("nic-port-flapping", "warning", "eth3")]


@pytest.mark.parametrize(
    "lines",
    [
        ["IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready"] * 20,  # one for each container
        ["IPv6: ADDRCONF(NETDEV_UP): eth1: link is not ready"],
        ["br0: port 2(veth12ab) entered disabled state", "br0: port 2(veth12ab) entered forwarding state"] * 4,
        ["ata3: SATA link down (SStatus 0 SControl 300)"],
        ["lo: Link UP", "lo: Gained carrier"],
        ["e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: None"],
    ],
)
def test_lines_of_healthy_machines(lines: list[str]) -> None:
    assert found_in(text(*lines)) == []
