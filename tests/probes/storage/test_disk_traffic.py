"""Bytes that disks have read and written: of disks on hardware, not of partitions and virtual disks."""

from __future__ import annotations

import errno

from linkgauge.models.facts.records import Evidence, NotChecked, Observation
from linkgauge.probes.host.entries import Link, UnreadableFile
from linkgauge.probes.storage.disk_traffic import read_disk_traffic
from tests.support.nodes.trees import tree
from tests.support.not_checked import refused

PCI = "sys/devices/pci0000:00/0000:00:02.0"
NVME, SATA, BROKEN = f"{PCI}/nvme/nvme0/nvme0n1", f"{PCI}/ata1/block/sda", f"{PCI}/ata1/block/sdb"
HEAD = "sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"  # a multipath disk: its paths count the bytes
STAT = "   9 0 {} 5   9 0 {} 5   0 0 0"


def test_the_bytes_of_each_disk() -> None:
    folders = {"nvme0n1": NVME, "nvme0n1p1": f"{NVME}/nvme0n1p1", "sda": SATA, "sdb": BROKEN, "nvme1n1": HEAD}
    texts = {NVME: STAT.format(300, 20), f"{NVME}/nvme0n1p1": STAT.format(1, 1), BROKEN: "7", HEAD: STAT.format(0, 0)}
    host = tree(
        {
            **{f"{folder}/stat": text for folder, text in texts.items()},
            f"{SATA}/stat": UnreadableFile(errno.EACCES, "Permission denied"),
            **{f"sys/class/block/{name}": Link(f"/{folder}") for name, folder in folders.items()},
        }
    )
    said: list[Observation | NotChecked] = [
        Observation(
            about="nvme0n1",
            quantity=quantity,
            unit="bytes",
            value=value,
            at=host.now(),
            evidence=Evidence(f"{NVME}/stat", f"{value:.0f}"),
        )
        for quantity, value in (("read_bytes", 153600.0), ("written_bytes", 10240.0))
    ]
    assert list(read_disk_traffic(host)) == [*said, refused("disk_traffic", "sda", f"{SATA}/stat")]
