"""NVMe controllers, disks and software RAID."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from linkgauge.models.facts.machine import Array, Disk, Nvme
from linkgauge.models.facts.records import Evidence, Fact, Record
from linkgauge.probes.host.entries import Entry, Folder, Link, UnreadableFile
from linkgauge.probes.host.host import Host
from linkgauge.probes.storage.arrays import read_arrays
from linkgauge.probes.storage.disks import read_disks
from linkgauge.probes.storage.nvme import read_nvme
from tests.support.nodes.trees import tree
from tests.support.not_checked import unreadable

PORT = "sys/devices/pci0000:60/0000:60:01.0"
BLOCK = "sys/class/block"
BROKEN = UnreadableFile(errno.EIO, "Input/output error")

Files = Mapping[str, Entry]


def read(reader: Callable[[Host], Iterator[Record]], files: Files) -> list[Record]:
    return [replace(said, cites={}) if isinstance(said, Fact) else said for said in reader(tree(files))]


def link(path: str, target: str) -> Files:
    return {path: Link("../" * path.count("/") + target)}


def controller(folder: str, transport: str, **files: str) -> Files:
    name = folder.rpartition("/")[2]
    texts = {f"{folder}/{file}": text for file, text in files.items()}
    serial = {f"{folder}/serial": "S6CKNE0T"}
    return {**texts, **serial, f"{folder}/transport": transport, **link(f"sys/class/nvme/{name}", folder)}


def block(folder: str, sectors: int, rotational: str = "0") -> Files:
    name = folder.rpartition("/")[2]
    texts = {f"{folder}/size": str(sectors), f"{folder}/queue/rotational": rotational}
    return {**texts, **link(f"{BLOCK}/{name}", folder)}


def partition(folder: str, sectors: int) -> Files:
    name = folder.rpartition("/")[2]
    return {f"{folder}/size": str(sectors), f"{folder}/partition": "1", **link(f"{BLOCK}/{name}", folder)}


def test_controllers() -> None:
    nvme0 = f"{PORT}/0000:61:00.0/nvme/nvme0"
    files = {
        **controller(
            nvme0,
            "pcie",
            address="0000:61:00.0",
            model="SAMSUNG MZQL23T8HCLS-00A07     ",
            firmware_rev="GDC5602Q",
            state="live",
        ),
        **controller(f"{PORT}/0000:61:05.5/pci10000:e0/10000:e0:02.0/10000:e1:00.0/nvme/nvme1", "pcie", state="dead"),
        **controller(
            "sys/devices/virtual/nvme-fabrics/ctl/nvme2",
            "tcp",
            address="traddr=10.0.0.1,trsvcid=4420",
            state="connecting",
        ),
    }
    first, *others = read_nvme(tree(files))
    assert first == Nvme(
        key="nvme0",
        address="0000:61:00.0",
        model="SAMSUNG MZQL23T8HCLS-00A07",
        firmware="GDC5602Q",
        state="live",
        transport="pcie",
        cites={
            "model": Evidence(f"{nvme0}/model", "SAMSUNG MZQL23T8HCLS-00A07     "),
            "firmware": Evidence(f"{nvme0}/firmware_rev", "GDC5602Q"),
            "state": Evidence(f"{nvme0}/state", "live"),
            "transport": Evidence(f"{nvme0}/transport", "pcie"),
        },
    )
    assert [replace(other, cites={}) for other in others if isinstance(other, Fact)] == [
        Nvme(key="nvme1", address="10000:e1:00.0", state="dead", transport="pcie"),
        Nvme(key="nvme2", state="connecting", transport="tcp"),
    ]


def test_disks() -> None:
    nvme = f"{PORT}/0000:61:00.0/nvme/nvme0"
    sata = "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0"
    files = {
        **controller(nvme, "pcie", model="SAMSUNG"),
        **block(f"{nvme}/nvme0n1", 6),
        f"{nvme}/nvme0n1/device": Link(".."),
        f"{sata}/model": "ST9250610NS",
        **block(f"{sata}/block/sda", 9, "1"),
        f"{sata}/block/sda/device": Link("../.."),
        **partition(f"{sata}/block/sda/sda1", 8),
        **partition(f"{sata}/block/sda/sda2", 0),
        **block("sys/devices/virtual/block/dm-0", 1),
        **block("sys/devices/virtual/block/loop0", 0),
        **block("sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda", 2),
        f"{BLOCK}/gone/events": "",
    }
    assert read(read_disks, files) == [
        Disk(key="dm-0", size=512, rotational=False),
        Disk(key="nvme0n1", size=3072, model="SAMSUNG", rotational=False, address="0000:61:00.0", controller="nvme0"),
        Disk(key="sda", size=4608, model="ST9250610NS", rotational=True, address="0000:00:17.0"),
        Disk(key="sda1", size=4096, partition_of="sda"),
        Disk(key="sda2", size=0, partition_of="sda"),
        Disk(key="vda", size=1024, rotational=False, address="0000:00:04.0"),
    ]


def test_multipath_disks() -> None:
    """One way leads to nvme0n1, by nvme3: the number of a subsystem is not that of a controller. Two to nvme1n1."""
    one, two = (f"sys/devices/virtual/nvme-subsystem/nvme-subsys{number}" for number in (0, 1))
    nvme3, nvme4, nvme5 = (f"{PORT}/0000:6{number}:00.0/nvme/nvme{number}" for number in (3, 4, 5))
    files = {
        **controller(nvme3, "pcie"),
        **controller(nvme4, "pcie"),
        **controller(nvme5, "pcie"),
        f"{one}/model": "KIOXIA",
        **link(f"{one}/nvme3", nvme3),
        **block(f"{nvme3}/nvme0c3n1", 2),
        **block(f"{one}/nvme0n1", 2),
        f"{one}/nvme0n1/device": Link(".."),
        **partition(f"{one}/nvme0n1/nvme0n1p1", 1),
        f"{two}/model": "KIOXIA",
        **link(f"{two}/nvme4", nvme4),
        **link(f"{two}/nvme5", nvme5),
        **block(f"{nvme4}/nvme1c4n1", 2),
        **block(f"{nvme5}/nvme1c5n1", 2),
        **block(f"{two}/nvme1n1", 2),
        f"{two}/nvme1n1/device": Link(".."),
    }
    assert read(read_disks, files) == [
        Disk(key="nvme0n1", size=1024, model="KIOXIA", rotational=False, address="0000:63:00.0", controller="nvme3"),
        Disk(key="nvme0n1p1", size=512, partition_of="nvme0n1"),
        Disk(key="nvme1n1", size=1024, model="KIOXIA", rotational=False),
    ]


def test_disks_that_would_not_say() -> None:
    subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    files = {
        f"{BLOCK}/sda/size": "many",
        f"{BLOCK}/sdb/size": "2",
        f"{BLOCK}/sdb/queue/rotational": "2",
        f"{BLOCK}/sdb/device/model": BROKEN,
        f"{BLOCK}/sdc": Link(BROKEN),
        subsystem: Folder(BROKEN),
        **block(f"{subsystem}/nvme0n1", 2),
    }
    assert read(read_disks, files) == [
        unreadable("Disk", "sdc", f"{BLOCK}/sdc"),
        unreadable("Disk.controller", "nvme0n1", subsystem),
        Disk(key="nvme0n1", size=1024, rotational=False),
        unreadable("Disk.size", "sda", f"{BLOCK}/sda/size", "'many' is not a number"),
        Disk(key="sda"),
        unreadable("Disk.model", "sdb", f"{BLOCK}/sdb/device/model"),
        unreadable("Disk.rotational", "sdb", f"{BLOCK}/sdb/queue/rotational", "'2' is neither 0 nor 1"),
        Disk(key="sdb", size=1024),
    ]


def array(name: str, level: str, state: str, disks: str, **more: str) -> Files:
    texts = {"level": level, "array_state": state, "raid_disks": disks, **more}
    return {f"{BLOCK}/{name}/md/{file}": text for file, text in texts.items()}


def member(array: str, disk: str, state: str, there: bool = True) -> Files:
    folder, place = f"{BLOCK}/{array}/md/dev-{disk}", f"sys/devices/virtual/block/{disk}"
    block = {f"{place}/size": "2", **link(f"{folder}/block", place)} if there else {}
    return {f"{folder}/state": state, **block}


def test_arrays() -> None:
    files = {
        **array("md0", "raid0", "clean", "2"),
        **member("md0", "nvme0n1", "in_sync"),
        **member("md0", "nvme1n1", "in_sync"),
        f"{BLOCK}/md0p1/size": "1",
        f"{BLOCK}/sda/size": "1",
        **array("md1", "raid6", "active", "5 (4)", degraded="1"),
        **member("md1", "sda1", "faulty,write_mostly", False),
        **member("md1", "sdb1", "in_sync"),
        **member("md1", "sdc1", "spare"),
        **member("md1", "sdd1", "in_sync"),
        **array("md127", "", "inactive", "0"),
    }
    assert read(read_arrays, files) == [
        Array(key="md0", level="raid0", state="clean", members=("nvme0n1", "nvme1n1"), wanted=2, faulty=()),
        Array(
            key="md1",
            level="raid6",
            state="active",
            members=("sda1", "sdb1", "sdc1", "sdd1"),
            wanted=5,
            missing=1,
            faulty=("sda1",),
        ),
        Array(key="md127", state="inactive", members=(), wanted=0, faulty=()),
    ]


def test_arrays_that_would_not_say() -> None:
    files = {
        **array("md0", "raid1", "clean", "two"),
        **member("md0", "sda", ""),
        f"{BLOCK}/md0/md/dev-sda/state": BROKEN,
        **array("md1", "raid1", "clean", "2"),
        **member("md1", "sdb", ""),
        f"{BLOCK}/md1/md/dev-sdb/state": BROKEN,
        **member("md1", "sdc", "faulty"),
        f"{BLOCK}/md2/md": Folder(BROKEN),
    }
    md0, md1 = f"{BLOCK}/md0/md", f"{BLOCK}/md1/md"
    assert read(read_arrays, files) == [
        unreadable("Array.wanted", "md0", f"{md0}/raid_disks", "'two' is not a number of disks"),
        unreadable("Array.faulty", "md0", f"{md0}/dev-sda/state"),
        Array(key="md0", level="raid1", state="clean", members=("sda",)),
        unreadable("Array.faulty", "md1", f"{md1}/dev-sdb/state"),
        Array(key="md1", level="raid1", state="clean", members=("sdb", "sdc"), wanted=2, faulty=("sdc",)),
        unreadable("Array", "md2", f"{BLOCK}/md2/md"),
    ]


def test_nothing_there() -> None:
    assert [said for reader in (read_nvme, read_disks, read_arrays) for said in read(reader, {})] == []
