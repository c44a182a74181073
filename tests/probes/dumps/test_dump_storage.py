"""df, mount, mdstat, lsblk and nvme list, as text and JSON: whole, cut, and of rubbish."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Array, Disk, Mount, Nvme
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host import storage_json, storage_text

OUTPUTS = Path(__file__).parents[3].parent / "shared/data/outputs"

DF = """\
Filesystem      1K-blocks     Used Available Use% Mounted on
tmpfs               65536        0     65536   0% /dev/shm
tmpfs             1000000        8    999992   1% /run
/dev/nvme0n1p2  100000000 90000000  10000000  90% /
/dev/loop1          65536    65536         0 100% /snap/core
nas:/export/home  1000000   500000    500000  50% /home
"""
FILLED = [
    Mount(key="/dev/shm", device="tmpfs", fstype="tmpfs", size=64 << 20, free=64 << 20),
    Mount(key="/", device="/dev/nvme0n1p2", size=102400000000, free=10240000000),
    Mount(key="/home", device="nas:/export/home", size=1024000000, free=512000000),
]
MOUNT = """\
/dev/sda1 on / type ext4 (rw,relatime)
sysfs on /sys type sysfs (rw,nosuid)
nas:/data on /data type nfs4 (ro,vers=4.1)
"""
PROC_MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
sysfs /sys sysfs rw,nosuid 0 0
nas:/data /data nfs4 ro,vers=4.1 0 0
"""
MOUNTED = [
    Mount(key="/", device="/dev/sda1", fstype="ext4", read_only=False),
    Mount(key="/data", device="nas:/data", fstype="nfs4", read_only=True),
]
MDSTAT = """\
Personalities : [raid1] [raid0]
md0 : active raid1 nvme1n1[1](F) nvme0n1[0]
      976630464 blocks super 1.2 [2/1] [U_]
      bitmap: 0/8 pages [0KB], 65536KB chunk
md1 : active raid0 nvme3n1[1] nvme2n1[0]
      1953260928 blocks super 1.2 512k chunks
md2 : inactive nvme4n1[0](S)
      976630464 blocks super 1.2
unused devices: <none>
"""
ARRAYS = [
    Array(
        key="md0",
        level="raid1",
        state="active",
        members=("nvme1n1", "nvme0n1"),
        faulty=("nvme1n1",),
        wanted=2,
        missing=1,
    ),
    Array(key="md1", level="raid0", state="active", members=("nvme3n1", "nvme2n1"), faulty=()),
    Array(key="md2", state="inactive", members=(), faulty=()),
]
LSBLK = """\
NAME        MAJ:MIN RM   SIZE RO TYPE  MOUNTPOINTS
loop0         7:0    0  63.9M  1 loop  /snap/core
nvme0n1     259:0    0 894.3G  0 disk
├─nvme0n1p1 259:1    0     1G  0 part  /boot
└─nvme0n1p2 259:2    0 893.3G  0 part
  └─vg-root 253:0    0 893.3G  0 lvm   /
sda           8:0    0   1.8T  0 disk
"""
BLOCKS = [
    Disk(key="nvme0n1"),
    Disk(key="nvme0n1p1", partition_of="nvme0n1"),
    Mount(key="/boot", device="/dev/nvme0n1p1"),
    Disk(key="nvme0n1p2", partition_of="nvme0n1"),
    Mount(key="/", device="/dev/vg-root"),
    Disk(key="sda"),
]
NVME = """\
Node            Generic         SN     Model                    Namespace  Usage        Format   FW Rev
--------------- --------------- ------ ------------------------ ---------- ------------ -------- --------
/dev/nvme0n1    /dev/ng0n1      S000   SAMSUNG MZWLO3T8HCLS     0x1        3.84  TB     512   B  OPPA4B5Q
"""
NAMESPACES: list[Fact] = [Disk(key="nvme0n1", model="SAMSUNG MZWLO3T8HCLS")]
BLOCKDEVICES = json.dumps(
    {
        "blockdevices": [
            {
                "name": "/dev/sda",
                "type": "disk",
                "size": 1000,
                "rota": "1",
                "model": "X Y ",
                "mountpoint": None,
                "children": [
                    {
                        "name": "sda1",
                        "type": "part",
                        "size": "1G",
                        "rota": True,
                        "mountpoints": [None, "/"],
                        "fstype": "ext4",
                    }
                ],
            },
            {"name": "loop0", "type": "loop", "size": 5, "mountpoint": "/snap/core"},
        ]
    },
    indent=3,
)
DEVICES = [
    Disk(key="sda", size=1000, model="X Y", rotational=True),
    Disk(key="sda1", rotational=True, partition_of="sda"),
    Mount(key="/", device="/dev/sda1", fstype="ext4"),
]
NVME_JSON = json.dumps({"Devices": [{"DevicePath": "/dev/nvme1n1", "ModelNumber": "Z 9", "PhysicalSize": 4096}]})
NVME_2 = json.dumps(  # nvme-cli 2, and -v of older ones
    {
        "Devices": [
            {
                "HostNQN": "nqn",
                "Subsystems": [
                    {
                        "Subsystem": "nvme-subsys0",
                        "Controllers": [
                            {
                                "Controller": "nvme0",
                                "ModelNumber": "Z 9",
                                "Firmware": "1.0",
                                "Transport": "pcie",
                                "Address": "0000:01:00.0",
                                "Namespaces": [{"NameSpace": "nvme0n1", "PhysicalSize": 4096}],
                            }
                        ],
                    },
                    {
                        "Subsystem": "nvme-subsys1",
                        "Namespaces": [{"NameSpace": "nvme1n1", "PhysicalSize": 8192}],
                        "Controllers": [
                            {
                                "Controller": "nvme1",
                                "ModelNumber": "Z 9",
                                "Transport": "tcp",
                                "Address": "traddr=10.0.0.1",
                            },
                            {"Controller": "nvme2", "ModelNumber": "Z 9"},
                        ],
                    },
                ],
            }
        ]
    }
)
SUBSYSTEMS = [
    Nvme(key="nvme0", address="0000:01:00.0", model="Z 9", firmware="1.0", transport="pcie"),
    Disk(key="nvme0n1", size=4096, model="Z 9", controller="nvme0"),
    Disk(key="nvme1n1", size=8192),
    Nvme(key="nvme1", model="Z 9", transport="tcp"),
    Nvme(key="nvme2", model="Z 9"),
]
NVME_V = """\
Device   SN       MN                   FR       TxPort Address        Subsystem    Namespaces
-------- -------- -------------------- -------- ------ -------------- ------------ ----------------
nvme0    S000     SAMSUNG MZWLO3T8HCLS OPPA4B5Q pcie   0000:01:00.0   nvme-subsys0 nvme0n1
"""
CONTROLLERS: list[Fact] = [
    Nvme(key="nvme0", address="0000:01:00.0", model="SAMSUNG MZWLO3T8HCLS", firmware="OPPA4B5Q", transport="pcie"),
]
TEXTS = [
    (DF, FILLED),
    (MOUNT, MOUNTED),
    (PROC_MOUNTS, MOUNTED),
    (MDSTAT, ARRAYS),
    (LSBLK, BLOCKS),
    (NVME, NAMESPACES),
    (NVME_V, CONTROLLERS),
]


def said(family: ModuleType, text: str) -> list[Record]:
    return list(family.read(Part("dump", 1, text)))


def plain(told: list[Record]) -> list[Record]:
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in told]


def begins(family: ModuleType, text: str) -> int | None:
    found = re.search(family.BEGIN, text, re.MULTILINE)
    return found.start() if found else None


@pytest.mark.parametrize(("text", "facts"), TEXTS)
def test_all_of_it(text: str, facts: list[Fact]) -> None:
    assert begins(storage_text, text) == 0
    assert plain(said(storage_text, text)) == facts


@pytest.mark.parametrize(("text", "facts"), TEXTS)
def test_each_fact_cites_its_line(text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    for one in said(storage_text, text):
        assert isinstance(one, Fact)
        for cite in one.cites.values():
            assert cite.text == lines[int(cite.source.removeprefix("dump:")) - 1].strip()


@pytest.mark.parametrize(("text", "facts"), TEXTS)
def test_cut_at_every_line(text: str, facts: list[Fact]) -> None:
    lines = text.splitlines()
    whole = {(type(one), one.key): one for one in facts}
    for end in range(len(lines) + 1):
        for one in plain(said(storage_text, "\n".join(lines[:end]))):
            assert isinstance(one, Fact)
            known = whole[type(one), one.key]
            told = {name for name in one.__slots__ if getattr(one, name) is not None}
            assert {name: getattr(one, name) for name in told} == {name: getattr(known, name) for name in told}


def test_sizes_for_people_are_rounded() -> None:
    text = (
        "Filesystem     Type   Size  Used Avail Use% Mounted on\n/dev/sda1      ext4   1.5T  1.0T  512G  67% /scratch\n"
    )
    assert plain(said(storage_text, text)) == [
        Mount(key="/scratch", device="/dev/sda1", fstype="ext4", size=3 << 39, free=512 << 30)
    ]


@pytest.mark.parametrize(
    ("text", "facts"),
    [(BLOCKDEVICES, DEVICES), (NVME_JSON, [Disk(key="nvme1n1", model="Z 9", size=4096)]), (NVME_2, SUBSYSTEMS)],
)
def test_json(text: str, facts: list[Fact]) -> None:
    assert begins(storage_json, text) == 0
    assert plain(said(storage_json, text)) == facts
    assert plain(said(storage_json, f"$ lsblk -J\n{text}\n")) == facts


@pytest.mark.parametrize("end", range(1, len(BLOCKDEVICES), 7))
def test_json_that_was_cut_says_so(end: int) -> None:
    (one,) = said(storage_json, BLOCKDEVICES[:end])
    assert isinstance(one, NotChecked)
    assert one.why == "dump:1: no whole JSON text begins here: it was cut, or is none"


def test_json_with_something_behind_it() -> None:
    *facts, rest = said(storage_json, f"{NVME_JSON}\nand more")
    assert len(facts) == 1
    assert rest == NotChecked(
        what="dump", subject="dump", reason=Reason.UNREADABLE, detail="line 1: what stands behind the JSON was not read"
    )


def test_deep_and_strange_json() -> None:
    deep = '{"blockdevices": [' + '{"name": "sda", "type": "disk", "children": [' * 5000
    assert [type(one) for one in said(storage_json, deep)] == [NotChecked]
    assert said(storage_json, '{"blockdevices": [1, null, {"name": 7}, {"name": "sd\\u0000a"}], "Devices": {}}') == []


@given(st.data())
@pytest.mark.parametrize("family", [storage_text, storage_json])
def test_any_text(family: ModuleType, data: st.DataObject) -> None:
    lines = [line for text, _ in TEXTS for line in text.splitlines(keepends=True)]
    parts = st.sampled_from(
        [*lines, BLOCKDEVICES, NVME_JSON, "\n", " ", "[2/1]", "(F)", "/dev/", "%", '{"Devices": [', "{"]
    )
    mixed = data.draw(st.lists(parts | st.text(max_size=6), max_size=30).map("".join) | st.text())
    begins(family, mixed)
    for one in said(family, mixed):
        assert isinstance(one, (Fact, NotChecked))
        assert decode(encode(one)) == one


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize("family", [storage_text, storage_json])
def test_no_other_tool_begins_so(family: ModuleType) -> None:
    paths = [path for path in sorted(OUTPUTS.rglob("*")) if path.is_file() and path.parent.name != "lsblk"]
    assert [path.name for path in paths if begins(family, path.read_text(errors="replace")) is not None] == []


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
@pytest.mark.parametrize(("name", "disks"), [("lsblk.1.json", 17), ("lsblk.3.json", 12)])
def test_recorded_outputs(name: str, disks: int) -> None:
    told = said(storage_json, (OUTPUTS / "lsblk" / name).read_text())
    assert not any(isinstance(one, NotChecked) for one in told)
    assert len({one.key for one in told if isinstance(one, Disk)}) == disks
