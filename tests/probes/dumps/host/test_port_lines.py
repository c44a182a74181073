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


BSD = ("igb1", "ix0", "ixl3", "mce0", "bge0", "em2", "bnxt1", "ice0", "cxl0", "re0")
BSD_LINES = (
    ("{p}: link state changed to DOWN", "{p}: link state changed to UP"),
    ("{p}: link state DOWN (was UP)", "{p}: link state UP (was DOWN)"),
)
HEADS = ("Mar  3 10:{m:02}:11 gate7 kernel: ", "Mar  3 10:{m:02}:11 kernel: ", "<6>Mar  3 10:{m:02}:11 kernel: ", "")


def of_bsd(head: str, port: str, lines: tuple[str, ...]) -> str:
    """A log with one line in four minutes."""
    return "".join(f"{head.format(m=4 * n)}{line.format(p=port)}\n" for n, line in enumerate(lines))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("lines", BSD_LINES)
@pytest.mark.parametrize("port", BSD)
def test_ports_of_bsd_systems(port: str, lines: tuple[str, str], head: str) -> None:
    down, up = lines
    assert found_in(of_bsd(head, port, (up, down))) == [("nic-port-down", "warning", port)]
    assert found_in(of_bsd(head, port, (down, up))) == []
    assert ("nic-port-flapping", "warning", port) in found_in(of_bsd(head, port, (down, up) * 3))


@pytest.mark.parametrize("port", ["lagg0", "bridge0", "tap3", "epair0a", "vlan12", "igb1.40", "wg0", "tun0"])
def test_virtual_ports_of_bsd_systems(port: str) -> None:
    assert found_in(of_bsd(HEADS[0], port, BSD_LINES[0] * 4)) == []


DRIVERS = (
    ("r8169 0000:03:00.0 {p}: Link is Down", "r8169 0000:03:00.0 {p}: Link is Up - 1Gbps/Full - flow control off"),
    ("i40e 0000:3b:00.0 {p}: NIC Link is Down", "i40e 0000:3b:00.0 {p}: NIC Link is Up, 10 Gbps Full Duplex"),
    ("ice 0000:3b:00.0 {p}: NIC Link is Down", "ice 0000:3b:00.0 {p}: NIC Link is up 25 Gbps Full Duplex"),
    ("bnxt_en 0000:af:00.0 {p}: NIC Link is Down", "bnxt_en 0000:af:00.0 {p}: NIC Link is Up, 25000 Mbps full duplex"),
    ("tg3 0000:03:00.0 {p}: Link is down", "tg3 0000:03:00.0 {p}: Link is up at 1000 Mbps, full duplex"),
    ("[qede_link_update:2412({p})]Link is down", "[qede_link_update:2407({p})]Link is up"),
    ("cxgb4 0000:04:00.4 {p}: link down", "cxgb4 0000:04:00.4 {p}: link up, 100Gbps, full-duplex, Tx/Rx PAUSE"),
    ("sfc 0000:01:00.0 {p}: link down", "sfc 0000:01:00.0 {p}: link up at 10000Mbps full-duplex (MTU 1500)"),
    ("hns3 0000:7d:00.0 {p}: link down", "hns3 0000:7d:00.0 {p}: link up"),
    ("mlx4_en: {p}: Link Down", "mlx4_en: {p}: Link Up"),
    ("mlx5_core 0000:18:00.0 {p}: Link down", "mlx5_core 0000:18:00.0 {p}: Link up"),
    ("ena 0000:00:05.0 {p}: Link is Down", "ena 0000:00:05.0 {p}: Link is Up"),
    ("hinic 0000:3b:00.0 {p}: Netdev is link down", "hinic 0000:3b:00.0 {p}: Netdev is link up"),
    ("gve 0000:00:04.0 {p}: Device link is down.", "gve 0000:00:04.0 {p}: Device link is up."),
    ("alx 0000:02:00.0 {p}: Link Down", "alx 0000:02:00.0 {p}: NIC Up: 1 Gbps Full"),
    ("ionic 0000:b5:00.0 {p}: Link down", "ionic 0000:b5:00.0 {p}: Link up - 100 Gbps"),
    ("rvu_nicpf 0002:02:00.0 {p}: NIC Link is DOWN", "rvu_nicpf 0002:02:00.0 {p}: NIC Link is UP 10000 Mbps"),
)


@pytest.mark.parametrize("port", ["eth3", "enp59s0f1np1"])
@pytest.mark.parametrize("lines", DRIVERS)
def test_lines_of_drivers(lines: tuple[str, str], port: str) -> None:
    down, up = lines
    assert found_in(text(down, port=port)) == [("nic-port-down", "warning", port)]
    assert found_in(text(down, up, port=port)) == []
    assert ("nic-port-flapping", "warning", port) in found_in(text(*(down, up) * 3, port=port))
