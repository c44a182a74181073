"""Which file systems lie on which disk, in a tree of the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.host.live import Live
from linkgauge.probes.storage.block_mounts import MountedFolder, disk_of, mount_points, mounted_folder

MOUNTS = r"""21 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
22 21 0:5 / /proc rw,nosuid - proc proc rw
23 21 253:0 / /data rw - xfs /dev/mapper/vg-data rw,attr2
24 21 0:48 /home /my\040files rw,noatime shared:7 master:3 - btrfs /dev/nvme1n1 rw
25 21 9:0 / /raid rw - ext4 /dev/md0 rw
26 21 0:50 / /far rw - nfs4 server:/export rw,vers=4.2
27 21 0:51 / /dev/shm rw - tmpfs tmpfs rw
"""
NUMBERS = {"nvme0n1": "259:0", "nvme0n1p2": "259:2", "nvme1n1": "259:1", "dm-0": "253:0", "dm-1": "253:1", "md0": "9:0"}


@pytest.fixture
def host(tmp_path: Path) -> Live:
    """A disk with a partition, a whole disk, volumes on one and on two of them, and an array."""
    block, disks = tmp_path / "sys/class/block", tmp_path / "sys/devices"
    block.mkdir(parents=True)
    for name, number in NUMBERS.items():
        folder = disks / ("nvme0n1/nvme0n1p2" if name == "nvme0n1p2" else name)
        folder.mkdir(parents=True)
        (folder / "dev").write_text(f"{number}\n")
        (block / name).symlink_to(f"../../devices/{folder.relative_to(disks)}")
    (disks / "nvme0n1/nvme0n1p2/partition").write_text("2\n")
    for upper, lower in (("dm-0", "nvme0n1p2"), ("dm-1", "nvme1n1"), ("dm-1", "nvme0n1"), ("md0", "nvme1n1")):
        (disks / upper / "slaves" / lower).mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvme1n1").write_text("")
    return Live(str(tmp_path))


def test_mount_points_and_their_devices(host: Live) -> None:
    assert mount_points(host) == [
        MountedFolder("/", "ext4", "nvme0n1p2", remote=False),
        MountedFolder("/proc", "proc", None, remote=False),
        MountedFolder("/data", "xfs", "dm-0", remote=False),
        MountedFolder("/my files", "btrfs", "nvme1n1", remote=False),
        MountedFolder("/raid", "ext4", "md0", remote=False),
        MountedFolder("/far", "nfs4", None, remote=True),
        MountedFolder("/dev/shm", "tmpfs", None, remote=False),
    ]


@pytest.mark.parametrize(
    ("device", "disk"),
    [("nvme0n1", "nvme0n1"), ("nvme0n1p2", "nvme0n1"), ("dm-0", "nvme0n1"), ("dm-1", "dm-1"), ("md0", "md0")],
)
def test_the_disk_below(host: Live, device: str, disk: str) -> None:
    """Of a volume on a partition the disk; what lies on several is its own."""
    assert disk_of(host, device) == disk


@given(st.text(st.sampled_from("0123456789:/- \\\nabrw"), max_size=200))
def test_any_table_of_mounts(text: str) -> None:
    class Told(Live):
        def read(self, path: str) -> str | None:
            return text if path.endswith("mountinfo") else None

    assert all(one.point for one in mount_points(Told("/nowhere")))


def test_a_folder_of_this_machine(tmp_path: Path) -> None:
    if not any(one.point == "/" for one in mount_points(Live())):
        pytest.skip("the root of this machine is no mount point, or /proc is not mounted")
    place = mounted_folder(Live(), str(tmp_path))
    assert place
    assert place.point == str(tmp_path)
    assert mounted_folder(Live(), str(tmp_path / "none")) is None
    link = tmp_path / "link"
    link.symlink_to("/proc")
    assert mounted_folder(Live(), str(link)) == MountedFolder("/proc", "proc", None, remote=False)
