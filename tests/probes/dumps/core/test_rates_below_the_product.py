"""Ports far below the rate of their adapter, without anything that says why: a gap. And outputs that come twice."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

IBSTAT = """\
CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Firmware version: 28.39.1002
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: {}
		Link layer: InfiniBand
"""
DEVINFO = """\
hca_id:	mlx5_0
	transport:			InfiniBand (0)
	fw_ver:				28.39.1002
	vendor_id:			0x02c9
	vendor_part_id:			4129
		port:	1
			state:			PORT_ACTIVE (4)
			active_width:		4X (2)
			active_speed:		{}
			link_layer:		InfiniBand
"""
SYSFS = """\
/sys/class/infiniband/mlx5_0/hca_type:MT4129
/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE
/sys/class/infiniband/mlx5_0/ports/1/rate:{} Gb/sec (4X)
"""
MLXLINK = """\
Operational Info
----------------
State                              : Active
Physical state                     : LinkUp
Speed                              : {}
Width                              : 4x

Supported Info
--------------
Enabled Link Speed                 : 0x000000f0 (NDR,HDR,EDR)
Supported Cable Speed              : 0x000000f0 ({})
"""
ETHTOOL = """\
Settings for ens1f0np0:
	Supported link modes:   100000baseCR4/Full
				400000baseCR4/Full
	Speed: {}Mb/s
	Duplex: Full
	Link detected: yes
"""


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        *((IBSTAT.format(rate), "ok" if rate > 200 else "unknown") for rate in (50, 100, 200, 400)),
        (IBSTAT.format(100).replace("MT4129", "MT4115"), "ok"),
        (DEVINFO.format("100.0 Gbps (128)"), "ok"),
        (DEVINFO.format("25.0 Gbps (32)"), "unknown"),
        (SYSFS.format(400), "ok"),
        (SYSFS.format(100), "unknown"),
        (MLXLINK.format("IB-NDR", "NDR,HDR,EDR"), "ok"),
        (MLXLINK.format("IB-EDR", "NDR,HDR,EDR"), "unknown"),
        (MLXLINK.format("IB-HDR", "HDR,EDR"), "ok"),  # as fast as its cable
        (ETHTOOL.format(400000), "ok"),
        (ETHTOOL.format(100000), "unknown"),
        ("\n".join(IBSTAT.format(100).replace("mlx5_0", f"mlx5_{number}") for number in range(4)), "ok"),
    ],
)
def test_rates_below_the_product(text: str, verdict: str) -> None:
    assert report_of(text).verdict == verdict


COUNTERS = "     rx_packets_phy: 9123412\n     rx_symbol_err_phy: {0}\n     link_down_events_phy: {0}\n"
QUIET, LOUD = COUNTERS.format(0), COUNTERS.format(52341)


@pytest.mark.parametrize("heading", ["", "NIC statistics:\n"])
def test_counters_of_two_devices_without_names(heading: str) -> None:
    found = found_in(f"{heading}{QUIET}\n{heading}{LOUD}")
    assert found == [("nic-errors", "warning", "nic 2"), ("nic-port-flapping", "warning", "nic 2")]


@pytest.mark.parametrize("command", ["$ ethtool -S ens3f0\n", "NIC statistics for ens3f0:\n"])
@pytest.mark.parametrize("between", ["", "\n", "```\n\n```\n"])
def test_counters_of_one_device_in_two_outputs(command: str, between: str) -> None:
    faulty = [("nic-errors", "warning", "ens3f0"), ("nic-port-flapping", "warning", "ens3f0")]
    orders = ((QUIET, LOUD), (LOUD, LOUD), (LOUD, QUIET))
    for first, second in orders[: 2 if "`" in between else 3]:  # of two blocks, the later one counts
        assert found_in(f"{command}{first}{between}{command}{second}") == faulty
    assert not found_in(f"{command}{QUIET}{between}{command}{QUIET}")
    second_device = command.replace("ens3f0", "ens3f1")
    of_second = [(code, severity, "ens3f1") for code, severity, _ in faulty]
    assert found_in(f"{command}{QUIET}{between}{second_device}{LOUD}") == of_second


def test_a_file_system_that_is_full_in_the_second_output() -> None:
    heading = "Filesystem      Size  Used Avail Use% Mounted on\n"
    first, second = "/dev/sda2  1.8T  400G  1.3T  24% /\n", "/dev/sda2  1.8T  1.8T   20M 100% /\n"
    assert found_in(f"$ df -h /\n{heading}{first}$ df -h /\n{heading}{second}") == [("storage-full", "warning", "/")]
