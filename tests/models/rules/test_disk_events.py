"""Disks and file systems that failed by the kernel's log."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.machine import Disk, Mount, Nvme
from tests.support.nodes.event_logs import NOW, findings, log, summaries


def test_disks() -> None:
    slow, gone = "nvme nvme3: I/O 258 QID 4 timeout, aborting", "nvme nvme3: Removing after probe failure status: -19"
    here = Nvme(key="nvme3", model="a disk", state="live", address="0000:05:00.0", transport="pcie")
    assert summaries(here, *log(slow)) == [("storage-degraded", "nvme3", "info")]
    assert summaries(here, *log(slow, slow)) == [("storage-degraded", "nvme3", "warning")]
    assert summaries(*log(slow, gone)) == [("storage-degraded", "nvme3", "critical")]
    assert summaries(replace(here, state="dead"), *log(slow, slow)) == []


MEDIUM = "critical medium error, dev {}, sector 3907029160 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2"
UNREAD = "{}: Read(0x2) @ LBA 3907029160, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR"


def test_medium_errors() -> None:
    disk = Disk(key="sda", model="a disk")
    (finding,) = findings(disk, *log(MEDIUM.format("sda"), f"blk_update_request: {MEDIUM.format('sda')}"))
    assert (finding.code, finding.subject, finding.severity) == ("storage-degraded", "sda", "warning")
    assert (finding.subject_name, finding.observed) == ("a disk", 2)
    both = log(UNREAD.format("nvme3n1"), MEDIUM.format("nvme3n1"))  # one error: of the driver and the block layer
    (finding,) = findings(*both)
    assert (finding.subject, finding.severity, finding.observed) == ("nvme3n1", "warning", 1)
    sense = "sd 0:0:1:0: [sdb] tag#3 Add. Sense: Unrecovered read error - auto reallocate failed"
    assert summaries(*log(sense)) == [("storage-degraded", "sdb", "warning")]
    assert summaries(*log(MEDIUM.format("sda"), last=NOW - 90_000)) == [("storage-degraded", "sda", "info")]
    assert summaries(*log(MEDIUM.format("sr0"), MEDIUM.format("loop3"))) == []
    assert summaries(*log("I/O error, dev sdc, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2")) == []


@pytest.mark.parametrize(
    "line",
    [
        "EXT4-fs (sda2): Remounting filesystem read-only",
        "XFS (sda2): Corruption of in-memory data detected.  Shutting down filesystem",
        "XFS (sda2): log I/O error -5 at xlog_ioend_work+0x6c/0x80 [xfs].  Shutting down filesystem.",
        "BTRFS info (device sda2: state E): forced readonly",
    ],
)
def test_file_systems_that_an_error_stopped(line: str) -> None:
    (finding,) = findings(*log(line))
    assert (finding.code, finding.subject, finding.severity) == ("storage-degraded", "sda2", "critical")
    now = Mount(key="/raid", device="/dev/sda2", fstype="ext4", read_only=True)
    other = Mount(key="/ro", device="/dev/sda3", fstype="ext4", read_only=True)
    (finding,) = findings(now, other, *log(line, last=NOW - 90_000))
    assert (finding.severity, "sda2 (/raid)" in finding.message, finding.kind) == ("critical", True, "state")
    repaired = "critical" if "XFS" in line else "info"  # XFS stays mounted as writable
    assert summaries(replace(now, read_only=False), *log(line)) == [("storage-degraded", "sda2", repaired)]
    assert summaries(*log(line, last=NOW - 90_000)) == [("storage-degraded", "sda2", "info")]


def test_file_systems_with_errors_and_those_that_are_read_only_by_design() -> None:
    damaged = "EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm ls: reading directory lblock 0"
    assert summaries(*log(damaged)) == [("storage-degraded", "sda2", "warning")]
    stopped = "EXT4-fs (sda2): Remounting filesystem read-only"
    assert summaries(*log(damaged, stopped)) == [("storage-degraded", "sda2", "critical")]
    xfs = 'XFS (dm-0): metadata I/O error in "xfs_buf_ioend+0x2b" at daddr 0x1 len 8 error 5'
    assert summaries(*log(xfs)) == [("storage-degraded", "dm-0", "warning")]
    assert summaries(Mount(key="/usr", device="/dev/sda3", fstype="ext4", read_only=True)) == []
    design = (
        "EXT4-fs (sda3): mounted filesystem with ordered data mode. Opts: ro",
        "EXT4-fs (sda3): re-mounted 1b2c ro. Quota mode: none.",
        "EXT4-fs (sda3): error count since last fsck: 3",
        "XFS (sda3): Unmounting Filesystem",
        "EXT4-fs error (device loop7): ext4_lookup:1785: inode #2: comm snapd: iget: checksum invalid",
    )
    assert summaries(*log(*design)) == []
