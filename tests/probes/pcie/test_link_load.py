"""The links that carry traffic, from increasing counters."""

from __future__ import annotations

from pathlib import Path

from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.pcie.busy_speed import busy_links, byte_counts, read_link_load
from tests.support.nodes.trees import tree

SWITCH = "sys/devices/pci0000:18/0000:18:01.0/0000:19:00.0"
NIC, DISK = f"{SWITCH}/0000:1a:00.0/0000:1b:00.0", f"{SWITCH}/0000:1a:01.0/0000:1c:00.0"
ETH, NVME = f"{NIC}/net/eth0", f"{DISK}/nvme/nvme0/nvme0n1"
FILES: dict[str, Entry] = {
    "sys/class/net/eth0": Link(f"/{ETH}"),
    "sys/class/net/lo": Link("/sys/devices/virtual/net/lo"),
    "sys/class/block/nvme0n1": Link(f"/{NVME}"),
    "sys/class/block/sda": Link("/sys/devices/pci0000:00/0000:00:1f.2/block/sda"),
    "sys/devices/virtual/net/lo/statistics/rx_bytes": "5",
    "sys/devices/pci0000:00/0000:00:1f.2/block/sda/stat": "rubbish",
    f"{ETH}/statistics/rx_bytes": "1000",
    f"{ETH}/statistics/tx_bytes": "500",
    f"{NVME}/stat": "9 0 100 0 9 0 50 0 0 0 0",
    f"{SWITCH}/current_link_speed": "16.0 GT/s PCIe",
    f"{NIC}/current_link_speed": "32.0 GT/s PCIe",
    f"{DISK}/current_link_speed": UnreadableFile(5, "Input/output error"),
}


def seen(address: str, speed: float, path: str, text: str) -> Observation:
    return Observation(
        about=address,
        quantity="link_speed",
        unit="transfers_per_second",
        value=speed,
        at=1000,
        busy=True,
        evidence=Evidence(f"{path}/current_link_speed", text),
    )


def test_counters_of_hardware_alone() -> None:
    assert byte_counts(tree(FILES)) == {ETH: 1500, NVME: 150 * 512}


def test_every_link_above_a_busy_device() -> None:
    machine = tree(FILES)
    before = byte_counts(machine)
    after = {ETH: before[ETH] + 50_000_000, NVME: before[NVME] + 2_000_000}
    assert list(busy_links(machine, before, after, 0.1)) == [
        seen("0000:19:00.0", 16e9, SWITCH, "16 GT/s, 500 MB/s through eth0"),
        seen("0000:1b:00.0", 32e9, NIC, "32 GT/s, 500 MB/s through eth0"),
    ]


def test_nothing_of_links_at_rest_or_that_were_not_there_before() -> None:
    machine = tree(FILES)
    before = byte_counts(machine)
    assert list(busy_links(machine, before, before, 0.1)) == []
    assert list(busy_links(machine, {}, {ETH: 1 << 40}, 0.1)) == []


def test_a_link_that_would_not_say() -> None:
    machine = tree(FILES)
    busy = {NVME: 1 << 30}
    assert [one.about for one in busy_links(machine, {NVME: 0}, busy, 0.1) if isinstance(one, Observation)] == [
        "0000:19:00.0"
    ]


def test_under_root_nothing_is_missed(tmp_path: Path) -> None:
    """The files hold the speeds, and links.py reads them."""
    assert list(read_link_load(Live(str(tmp_path)))) == []


def test_it_is_asked_in_a_child() -> None:
    answer = '["Run",{"name":"x","ok":true,"seconds":0.0,"at":0.0}]'
    assert len(list(read_link_load(tree({}, {("link_load",): (answer,)})))) == 1
