"""NVLink, C2C and fabrics from NVIDIA's driver, through a stub of the driver (nvml_stub.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.gpu import GpuLink
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_topology import wiring
from tests.support.gpu.nvml_answers import gpu, of, only, seen

BLACKWELL = """
gpus = 1
speed = 53125
version = 8
links = 2
fabric = { state = 3, clique = 4, cluster = "5f1e2d3c4b5a69788796a5b4c3d2e1f0", health = 0x%x }
[answers]
nvmlDeviceGetName = "NVIDIA B200"
[fields]
"161" = "error 3"
"162" = "error 3"
"163" = "error 3"
"215" = 0
"215.1" = 3
"214" = 1
"221" = 0
"219" = 0
"220" = 0x0FFE
"293" = 0x0307
"235" = 900000
"236.1" = 41
"238.1" = 2
"""


def test_nvlink_5_counts_as_infiniband_does(driver: Callable[[str], Path]) -> None:
    driver(BLACKWELL % 0x51AA)
    said = list(state())
    assert [(link.version, link.speed) for link in of(said, GpuLink)] == [(5, 53.125e9)] * 2
    assert only(said).nvlink_rate == 50e9
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_recovery"): 3,
        ("gpu0/nvlink1", "nvlink_recovery"): 3,
        ("gpu0", "nvlink_recovery_failed"): 2,
        ("gpu0/nvlink0", "nvlink_recovery_failed"): 1,
        ("gpu0/nvlink1", "nvlink_recovery_failed"): 1,
        ("gpu0", "nvlink_symbol_errors"): 0,
        ("gpu0", "nvlink_effective_errors"): 0,
    }
    assert of(said, NotChecked) == []


@pytest.mark.parametrize(
    ("health", "faults"),
    [
        (0x51AA, ()),  # nothing wrong
        (0, None),  # nobody says
        (0x1, ("degraded bandwidth",)),
        (0x54, ("route recovery", "route unhealthy", "access timeout recovery")),
        (0x500, ("incorrect configuration: insufficient NVLinks",)),
        (0xE00, ("incorrect configuration: 14",)),
        (0xA100, ("no partition assigned", "global fabric manager disconnected")),
    ],
)
def test_the_health_of_a_fabric(driver: Callable[[str], Path], health: int, faults: tuple[str, ...] | None) -> None:
    driver(BLACKWELL % health)
    one = only(list(state()))
    assert one.fabric_faults == faults
    assert (one.fabric_clique, one.fabric_cluster) == (4, "5f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")


def test_a_fabric_that_was_joined_with_an_error(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nfabric = { state = 3, status = 23 }")
    assert only(list(state())).fabric_status == "Error 23"


@pytest.mark.parametrize("version", [2, 0])
def test_fabrics_of_older_drivers(driver: Callable[[str], Path], version: int) -> None:
    driver(f"gpus = 1\nfabric_version = {version}\nfabric = {{ state = 3, clique = 9 }}")
    assert only(list(state())) == replace(gpu(), fabric_clique=9)


def test_an_a100_counts_in_fields_of_each_link(driver: Callable[[str], Path]) -> None:
    counted = {**dict.fromkeys((*range(32, 60), *range(96, 120)), 0), 46: 2, 119: 4, 102: 8}
    counts = "\n".join(f'"{number}" = {count}' for number, count in counted.items())
    unknown = "\n".join(f'"{number}" = "error 3"' for number in (161, 164, 166))
    version = "[answers]\nnvmlDeviceGetNvLinkVersion = 5"
    driver(f"gpus = 1\nlinks = 12\nspeed = 25000\n{version}\n[fields]\n{unknown}\n{counts}")
    said = list(state())
    assert [(link.version, link.speed) for link in of(said, GpuLink)] == [(3, 25e9)] * 12
    assert only(said).nvlink_rate == 25e9
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_replay"): 2,
        ("gpu0/nvlink0", "nvlink_replay"): 2,
        ("gpu0", "nvlink_recovery"): 4,
        ("gpu0/nvlink11", "nvlink_recovery"): 4,
        ("gpu0", "nvlink_crc"): 8,
        ("gpu0/nvlink6", "nvlink_crc"): 8,
    }


def test_counts_of_links_that_are_down(driver: Callable[[str], Path]) -> None:
    """A counter that such a link refuses is no gap. A counter that it has is read."""
    driver('gpus = 1\nlinks = 2\ndown = [1]\n[fields]\n"161.1" = 3\n"162.1" = "error 999"\n"163.1" = "error 29"')
    said = list(state())
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_replay"): 3,
        ("gpu0/nvlink1", "nvlink_replay"): 3,
        ("gpu0", "nvlink_recovery"): 0,
        ("gpu0", "nvlink_crc"): 0,
    }
    assert of(said, NotChecked) == []


def test_a_card_without_nvlink(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nlinks = 0\nfabric = { state = 0 }\nversion = 0")
    said = list(state())
    assert only(said) == replace(
        gpu(),
        nvlinks=0,
        nvlinks_present=0,
        nvlink_rate=None,
        fabric_state="not supported",
        fabric_status=None,
        fabric_clique=None,
    )
    assert not [one for one in seen(said) if "nvlink" in one[1]]


def test_links_that_were_cut_off_in_the_factory(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nlinks = 5\ncut = [1, 2]")
    links = [f"gpu0/nvlink{link}" for link in (0, 3, 4)]
    said, lasting = list(state()), list(wiring())
    assert (only(said).nvlinks, only(said).nvlinks_present) == (3, 3)
    assert [link.key for link in of(said, GpuLink)] == [link.key for link in of(lasting, GpuLink)] == links


def test_a_gpu_with_a_grace_processor(driver: Callable[[str], Path]) -> None:
    driver('gpus = 1\nlinks = 0\nc2c = 3\n[fields]\n"171.1" = 0')
    said = list(state())
    assert (only(said).c2c_links, only(said).c2c_rate) == (2, 44.712e9)
    assert of(said, GpuLink) == [
        GpuLink(
            key=f"gpu0/c2c{link}",
            gpu="gpu0",
            kind="c2c",
            active=link != 1,
            speed=None if link == 1 else 44.712e9,
            remote_kind="cpu",
        )
        for link in range(3)
    ]
