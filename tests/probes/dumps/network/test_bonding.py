"""Members of bonds whose links failed: /proc/net/bonding, counters of ethtool, and the log of older kernels."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

MEMBERS = ("eth2", "ens1f1np1", "enp65s0f0")
PROC = (
    "Ethernet Channel Bonding Driver: v{v}\n\nBonding Mode: fault-tolerance (active-backup)\nMII Status: up\n\n"
    "Slave Interface: eth9\nMII Status: up\nLink Failure Count: 0\n\n"
    "Slave Interface: {member}\nMII Status: up\nLink Failure Count: {n}\nPermanent HW addr: 02:00:00:00:00:02\n"
)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("version", ["2.6.1 (October 29, 2004)", "3.7.1 (April 27, 2011)", "6.8.0-45-generic"])
def test_a_member_that_failed_often_flaps(member: str, version: str) -> None:
    for count in (11, 12, 640):
        assert found_in(PROC.format(v=version, member=member, n=count)) == [("nic-port-flapping", "warning", member)]
    for count in (0, 1, 4):
        assert found_in(PROC.format(v=version, member=member, n=count)) == []


@pytest.mark.parametrize("driver", ["bonding: ", "", "kernel: bonding: "])
@pytest.mark.parametrize("end", [".", ", 10000 Mbps full duplex", "\n", ".\n\nAny idea?\n"])
def test_a_member_that_came_up_again_is_not_down(driver: str, end: str) -> None:
    for member in MEMBERS:
        down = f"{driver}bond0: link status definitely down for interface {member}, disabling it\n"
        up = f"{driver}bond0: link status definitely up for interface {member}{end}"
        assert ("nic-port-down", "warning", member) in found_in(down)
        assert not [one for one in report_of(down + up).findings if one.severity != "info"]


@pytest.mark.parametrize("changes", [22, 115, 9001])
def test_changes_of_a_link_in_the_counters_of_a_driver(changes: int) -> None:
    text = f"# ethtool -S eth{{}} | grep lsc_int\n     lsc_int: {changes}\n"
    for number in (2, 11):
        found = found_in(text.format(number))
        assert found == [("nic-port-flapping", "warning", f"eth{number}")]
    assert found_in("# ethtool -S eth2 | grep lsc_int\n     lsc_int: 3\n") == []
    assert found_in("# ethtool -S eth2\nNIC statistics:\n     link_down_events: 48\n") == [
        ("nic-port-flapping", "warning", "eth2")
    ]


def _bond(mode: str, *members: tuple[str, str, str]) -> str:
    """A bond with these members: name, speed in Mbit/s, and further lines."""
    text = f"Ethernet Channel Bonding Driver: v5.15.0\n\nBonding Mode: {mode}\nMII Status: up\n\n"
    return text + "".join(
        f"Slave Interface: {name}\nMII Status: up\nSpeed: {speed} Mbps\nDuplex: full\n{more}\n"
        for name, speed, more in members
    )


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize(("low", "high"), [(100, 25000), (10000, 25000), (1000, 100000)])
def test_a_member_that_is_slower_or_not_bundled(member: str, low: int, high: int) -> None:
    lacp, backup = "IEEE 802.3ad Dynamic link aggregation", "fault-tolerance (active-backup)"
    good = ("ens9f0", str(high), "Actor Churn State: none\nPartner Churn State: monitoring\n")
    slow = _bond(lacp, good, (member, str(low), ""))
    assert found_in(slow) == [("nic-rate-low", "warning", member)]
    assert f"{low} Mbps" in report_of(slow).findings[0].message
    same = _bond(lacp, good, (member, str(high), ""))
    assert found_in(same) == []
    assert found_in(slow + same) == []
    assert found_in(_bond(backup, good, (member, str(low), ""))) == []
    assert found_in(_bond(lacp, good) + _bond(lacp, (member, str(low), ""))) == []
    for end in ("Actor", "Partner"):
        churned = _bond(lacp, good, (member, str(high), f"{end} Churn State: churned\n"))
        assert found_in(churned) == [("nic-errors", "warning", member)]
    assert found_in(same.replace("Duplex: full", "Duplex: half", 1)) == [("nic-rate-low", "warning", "ens9f0")]


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_whose_state_changes_is_not_ok(member: str) -> None:
    text = f"Slave Interface: {member}\nMII Status: {{}}\nSpeed: 25000 Mbps\nLink Failure Count: 0\n"
    assert [one[:2] for one in found_in(text.format("going down"))] == [("nic-port-down", "warning")]
    assert report_of(text.format("going back")).verdict == "unknown"
    assert report_of(text.format("up")).verdict == "ok"


@pytest.mark.parametrize("speed", [19_000, 35_000, 90_000, 900_000])
def test_a_number_that_is_no_speed_of_ethernet_is_a_gap(speed: int) -> None:
    lacp = "IEEE 802.3ad Dynamic link aggregation"
    text = _bond(lacp, ("ens9f0", "100000", ""), ("ens9f1", str(speed), ""))
    assert found_in(text) == []
    report = report_of(text)
    assert report.verdict == "unknown"
    assert any(f"{speed} " in one.detail for one in report.not_checked)
