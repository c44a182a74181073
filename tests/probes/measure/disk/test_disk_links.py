"""The links below arrays and multipath disks while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.models.facts.records import Observation
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.disk.disk_links import DiskLinks, hardware
from linkgauge.probes.pcie.busy_speed import busy_links, byte_counts
from linkgauge.probes.pcie.speed_samples import FEWEST

PCI = "sys/devices/pci0000:00"
FIRST = f"{PCI}/0000:00:01.0/0000:01:00.0"
SECOND = f"{PCI}/0000:00:02.0/0000:02:00.0"
ARRAY = "sys/devices/virtual/block/md0"
SUBSYSTEM = "sys/devices/virtual/nvme-subsystem/nvme-subsys3"
STAT = "9 0 {} 0 9 0 0 0 0 0 0"
GB = 10**9


def machine(root: Path, disks: dict[str, str], virtual: str) -> None:
    """A machine with these disks, by their folder, and a device above them without hardware."""
    for place, name in disks.items():
        (root / place / name).mkdir(parents=True)
        (root / place / name / "stat").write_text(STAT.format(0))
        (root / place.split("/nvme/")[0] / "current_link_speed").write_text("32.0 GT/s PCIe\n")
    block = root / "sys/class/block"
    block.mkdir(parents=True)
    (root / virtual).mkdir(parents=True, exist_ok=True)
    for folder in (*(f"{place}/{name}" for place, name in disks.items()), virtual):
        (block / folder.rpartition("/")[2]).symlink_to(f"../../../{folder}")


@pytest.fixture
def array(tmp_path: Path) -> Live:
    machine(tmp_path, {f"{FIRST}/nvme/nvme0": "nvme0n1", f"{SECOND}/nvme/nvme1": "nvme1n1"}, ARRAY)
    for name in ("nvme0n1", "nvme1n1"):
        (tmp_path / ARRAY / "slaves").mkdir(exist_ok=True)
        (tmp_path / ARRAY / "slaves" / name).symlink_to(f"/sys/class/block/{name}")
    return Live(str(tmp_path))


@pytest.fixture
def multipath(tmp_path: Path) -> Live:
    """Names as in drivers/nvme/host/multipath.c: the disk below the subsystem, hidden paths below controllers."""
    machine(tmp_path, {f"{FIRST}/nvme/nvme4": "nvme3c4n1", f"{SECOND}/nvme/nvme5": "nvme3c5n1"}, f"{SUBSYSTEM}/nvme3n1")
    for controller, place in (("nvme4", FIRST), ("nvme5", SECOND)):
        (tmp_path / SUBSYSTEM / controller).symlink_to(f"/{place}/nvme/{controller}")
    return Live(str(tmp_path))


def move(host: Live, *folders: str) -> None:
    for folder in folders:
        (Path(host.root) / folder / "stat").write_text(STAT.format(100 * GB))


def links(host: Live, name: str, *moved: str) -> list[str]:
    samples = DiskLinks(host, name)
    for _ in range(FEWEST):
        samples.sample()
    move(host, *moved)
    return [str(one.about) for one in samples.observations("read") if isinstance(one, Observation)]


MEMBERS = (f"{FIRST}/nvme/nvme0/nvme0n1", f"{SECOND}/nvme/nvme1/nvme1n1")
PATHS = (f"{FIRST}/nvme/nvme4/nvme3c4n1", f"{SECOND}/nvme/nvme5/nvme3c5n1")


def test_all_members_of_an_array(array: Live) -> None:
    assert tuple(hardware(array, "md0")) == MEMBERS
    assert links(array, "md0", *MEMBERS) == ["0000:01:00.0", "0000:02:00.0"]


def test_all_paths_of_a_multipath_disk(multipath: Live) -> None:
    assert tuple(hardware(multipath, "nvme3n1")) == PATHS
    assert links(multipath, "nvme3n1", *PATHS) == ["0000:01:00.0", "0000:02:00.0"]


def test_a_member_or_path_without_traffic_is_at_rest(array: Live) -> None:
    assert links(array, "md0", MEMBERS[1]) == ["0000:02:00.0"]


def test_a_disk_of_its_own(array: Live) -> None:
    assert links(array, "nvme0n1") == ["0000:01:00.0"]
    assert links(array, "unknown") == []


def test_traffic_of_jobs_over_a_path(multipath: Live) -> None:
    """The kernel counts bytes at the hidden disk of the path."""
    before = byte_counts(multipath)
    move(multipath, PATHS[0])
    found = busy_links(multipath, before, byte_counts(multipath), 1.0)
    assert [one.about for one in found if isinstance(one, Observation)] == ["0000:01:00.0"]
