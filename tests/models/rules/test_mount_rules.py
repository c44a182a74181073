"""File systems that are nearly full: one finding for each that jobs write to."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Mount
from linkgauge.models.facts.records import Evidence
from linkgauge.models.report import Finding
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import storage_text
from tests.support.bare_findings import bare
from tests.support.nodes.gpu_facts import findings, summaries

TB = 10**12
Full = partial(Mount, size=28 * TB, free=TB)
RAID = Full(key="/raid", device="/dev/md0", fstype="xfs", read_only=False)


def test_a_full_one() -> None:
    (found,) = findings([RAID])
    assert bare(found) == Finding(
        code="storage-full",
        severity="warning",
        subject="/raid",
        subject_name="/dev/md0",
        message="/raid has 1 TB of 28 TB free (3.6%): checkpoints, caches and logs of jobs may find no room",
        expected=0.05 * (28 * TB),
        observed=TB,
        unit="bytes",
        expected_source="prometheus/node_exporter, docs/node-mixin: NodeFilesystemAlmostOutOfSpace warns below 5 %",
        cause="checkpoints, caches, logs or container images that nobody removed",
        evidence=(Evidence("statvfs /raid", f"{TB} of {28 * TB} bytes free"),),
        remedy=found.remedy,
    )


@pytest.mark.parametrize(
    "mount",
    [
        Mount(key="/raid", device="/dev/md0", size=28 * TB, free=2 * TB),
        Mount(key="/raid", device="/dev/md0", free=0),
        Mount(key="/raid", device="/dev/md0", size=0, free=0),
        Full(key="/data", device="nas:/data", fstype="nfs4", read_only=True),
        Full(key="/boot", device="/dev/sda2", fstype="ext4"),
        Full(key="/boot/efi", device="/dev/sda1", fstype="vfat"),
        Full(key="/host/boot/efi", device="/dev/sda1", fstype="vfat"),
        Full(key="/usr", device="/dev/mapper/usr", fstype="ext4"),  # Flatcar: an image of the system
        Full(key="/snap/core22/1", device="/dev/loop3"),
        Full(key="/mnt/cd", device="/dev/sr0", fstype="iso9660"),
        Full(key="/opt/image", device="/dev/sdb", fstype="squashfs"),
        Full(key="/dev/shm", device="tmpfs", fstype="tmpfs"),
        Full(key="/run", device="tmpfs"),
    ],
    ids=lambda mount: f"{mount.key} {mount.fstype}",
)
def test_what_is_no_fault(mount: Mount) -> None:
    assert summaries([mount]) == summaries([mount], origin="dumps") == []


def test_one_file_system_in_several_places_is_one_finding() -> None:
    """A container shows it as its overlay and as files of the host's disk."""
    names = ("/etc/hostname", "/etc/hosts", "/usr/bin/nvidia-smi")
    bound = [Full(key=name, device="/dev/sda1", fstype="ext4") for name in names]
    root = Full(key="/", device="overlay", fstype="overlay")
    assert [one[1] for one in summaries([*bound, root])] == ["/"]
    assert [one[1] for one in summaries(bound)] == ["/etc/hosts"]
    other = Full(key="/scratch", device="/dev/md0")  # another file system with the same size and free space
    assert [one[1] for one in summaries([RAID, Full(key="/scratch", device="/dev/md1")])] == ["/raid", "/scratch"]
    assert [one[1] for one in summaries([RAID, other])] == ["/raid"]


def test_from_df() -> None:
    text = """\
Filesystem      Size  Used Avail Use% Mounted on
/dev/nvme0n1p2  1.8T  1.8T   19G  99% /
/dev/nvme0n1p1  511M  505M  6.1M  99% /boot/efi
tmpfs           101G  101G     0 100% /run
/dev/loop0       64M   64M     0 100% /snap/core20/2318
/dev/md0         28T   20T  8.0T  72% /raid
"""
    assert summaries(storage_text.read(Part("df.txt", 1, text)), origin="dumps") == [
        ("storage-full", "/", "warning", "certain")
    ]


@given(st.integers(0, 10**16), st.integers(0, 10**16), st.integers(0, 10**16))
def test_more_room_is_never_worse(size: int, free: int, more: int) -> None:
    found = [summaries([Mount(key="/x", device="/dev/sda1", size=size, free=room)]) for room in (free, free + more)]
    assert len(found[1]) <= len(found[0])
