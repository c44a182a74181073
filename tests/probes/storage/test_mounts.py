"""Mounts that matter, and what is free on them."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Mount
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.storage.mounts import read_mounts
from linkgauge.probes.storage.statvfs import free_space
from tests.support.mounts import needs_proc
from tests.support.nodes.trees import tree, write

Writable = partial(Mount, read_only=False)
TABLE = r"""rootfs / rootfs rw 0 0
sysfs /sys sysfs rw,nosuid 0 0
devtmpfs /dev devtmpfs rw 0 0
nfs1:/export/home /home nfs4 rw,vers=4.2 0 0
overlay / overlay rw,lowerdir=/a 0 0
overlay /var/lib/containers/1/merged overlay rw 0 0
tmpfs /dev/shm tmpfs rw,size=24684084k 0 0
tmpfs /run tmpfs rw 0 0
/dev/md0 /raid ext4 rw,stripe=1024 0 0
/dev/sdb1 /mnt/old\040data\134x xfs rw 0 0
/dev/loop3 /snap/core22/1 squashfs ro 0 0
/dev/sdc1 /hidden ext4 rw 0 0
tmpfs /hidden tmpfs rw 0 0
tank/scratch /tank zfs rw 0 0
portal /run/user/0/doc fuse.portal rw 0 0
10.0.0.1@o2ib:/lustre /lustre lustre rw 0 0
dfuse /daos fuse.daos rw 0 0"""
LOCAL = [
    Writable(key="/", device="overlay", fstype="overlay"),
    Writable(key="/dev/shm", device="tmpfs", fstype="tmpfs"),
    Writable(key="/raid", device="/dev/md0", fstype="ext4"),
    Writable(key="/mnt/old data\\x", device="/dev/sdb1", fstype="xfs"),
    Writable(key="/tank", device="tank/scratch", fstype="zfs"),
]
FAR = [
    Writable(key="/home", device="nfs1:/export/home", fstype="nfs4"),
    Writable(key="/lustre", device="10.0.0.1@o2ib:/lustre", fstype="lustre"),
    Writable(key="/daos", device="dfuse", fstype="fuse.daos"),
]


def read(files: Mapping[str, Entry], asked: Sequence[Mount], answers: Sequence[Record] = ()) -> list[Record]:
    """What the reader says where a child, asked about these mount points in this order, gives these answers."""
    calls = {("statvfs", *(mount.key for mount in asked)): tuple(map(encode, answers))}
    return list(read_mounts(tree(files, calls)))


def full(mounts: Sequence[Mount]) -> list[Record]:
    return [Mount(key=mount.key, size=1000, free=10) for mount in mounts]


def test_local_ones_first_and_all_answered() -> None:
    everything = [*LOCAL, *FAR]
    assert read({"proc/1/mounts": TABLE}, everything, full(everything)) == [*everything, *full(everything)]


def test_a_file_system_of_a_user_is_not_of_the_machine() -> None:
    """With `user_allow_other` in fuse.conf(5), it can be full or never answer. Before, that changed the verdict."""
    options = "rw,nosuid,nodev,user_id={},group_id=1000,allow_other"
    table = (
        "nfs1:/home /home/eve nfs4 rw 0 0\nnfs1:/data /home/eve/data nfs4 rw 0 0\n"
        "nfs1:/everyone /home/everyone nfs4 rw 0 0\n"
        f"eve@host:/ /home/eve fuse.sshfs {options.format(1000)} 0 0\n"
        f"s3fs /bucket fuse.s3fs {options.format(0)} 0 0\n/dev/fuse /home/eve/x fuse {options.format(1000)} 0 0"
    )
    stores = [
        Writable(key="/home/everyone", device="nfs1:/everyone", fstype="nfs4"),
        Writable(key="/bucket", device="s3fs", fstype="fuse.s3fs"),
    ]
    assert read({"proc/1/mounts": table}, stores, full(stores)) == [*stores, *full(stores)]


def test_a_server_that_is_away_loses_what_comes_after_it() -> None:
    stale = NotChecked(what="Mount.free", subject="/home", reason=Reason.OTHER, detail="statvfs: Stale file handle")
    hangs = NotChecked(what="Mount.free", subject="node", reason=Reason.NO_ANSWER, detail="no answer within 2 s")
    why = "no answer within 2 s"
    assert read({"proc/1/mounts": TABLE}, [*LOCAL, *FAR], [*full(LOCAL), stale, hangs]) == [
        *LOCAL,
        *FAR,
        *full(LOCAL),
        stale,
        NotChecked(
            what="Mount.free",
            subject="/lustre",
            reason=Reason.NO_ANSWER,
            detail=why,
            how="see whether 10.0.0.1@o2ib:/lustre answers",
        ),
        NotChecked(
            what="Mount.free", subject="/daos", reason=Reason.NO_ANSWER, detail=why, how="see whether dfuse answers"
        ),
    ]


def test_a_mount_that_this_process_does_not_see_is_not_asked_for() -> None:
    files = {
        "proc/1/mounts": "/dev/sda1 / ext4 rw 0 0\n/dev/md0 /raid ext4 rw 0 0",
        "proc/self/mounts": "/dev/sda1 / ext4 ro 0 0\n/dev/sdz /raid xfs rw 0 0",
    }
    root, raid = (
        Writable(key=key, device=device, fstype="ext4") for key, device in (("/", "/dev/sda1"), ("/raid", "/dev/md0"))
    )
    unseen = NotChecked(
        what="Mount.free",
        subject="/raid",
        reason=Reason.OTHER_CONTEXT,
        detail="mounted for the machine's first process, not for this one",
        how="run outside of the container",
    )
    assert read(files, [root], full([root])) == [root, raid, unseen, *full([root])]


def test_only_files_are_read_under_a_root(tmp_path: Path) -> None:
    write(tmp_path, {"proc/mounts": "/dev/sda1 / ext4 rw 0 0"})
    assert list(read_mounts(Live(str(tmp_path)))) == [
        Writable(key="/", device="/dev/sda1", fstype="ext4"),
        NotChecked(
            what="Mount.free",
            subject="/",
            reason=Reason.OTHER_CONTEXT,
            detail="only files are read under --root",
            how="run on the machine itself, without --root",
        ),
    ]


def test_a_table_that_is_refused_and_one_that_is_garbled() -> None:
    root = Writable(key="/", device="/dev/sda1", fstype="ext4")
    shut: Mapping[str, Entry] = {"proc/1/mounts": UnreadableFile(errno.EACCES, "Permission denied")}
    assert read({**shut, "proc/mounts": "rubbish\n/dev/sda1 / ext4 rw 0 0"}, [root], full([root])) == [
        NotChecked(
            what="Mount",
            subject="node",
            reason=Reason.UNREADABLE,
            path="proc/mounts",
            detail="'rubbish' is not a mount",
        ),
        root,
        *full([root]),
    ]
    assert read(shut, []) == [
        NotChecked(
            what="Mount",
            subject="node",
            reason=Reason.PERMISSION,
            path="proc/1/mounts",
            detail="Permission denied",
            how="run as root",
        )
    ]


def test_nothing_there() -> None:
    assert read({}, []) == []


@needs_proc
def test_free_space(tmp_path: Path) -> None:
    told = os.statvfs(tmp_path)
    found, lost, empty = free_space(str(tmp_path), str(tmp_path / "gone"), "/proc")
    assert isinstance(found, Mount)
    assert (found.key, found.size) == (str(tmp_path), told.f_blocks * told.f_frsize)
    assert 0 <= (found.free or 0) <= (found.size or 0)
    gone = str(tmp_path / "gone")
    assert lost == NotChecked(
        what="Mount.free", subject=gone, reason=Reason.NOT_INSTALLED, path="statvfs", detail="No such file or directory"
    )
    assert empty == NotChecked(
        what="Mount.free",
        subject="/proc",
        reason=Reason.NOT_SUPPORTED,
        detail="the file system does not say how large it is",
    )
