"""Whatever stands in the files of a machine, a reader says something that can be passed on, and never raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.records import Record
from linkgauge.probes.host.host import Host
from linkgauge.probes.host.live import Live
from linkgauge.probes.storage.arrays import read_arrays
from linkgauge.probes.storage.disk_traffic import read_disk_traffic
from linkgauge.probes.storage.disks import read_disks
from linkgauge.probes.storage.mounts import read_mounts
from linkgauge.probes.storage.nvme import read_nvme
from linkgauge.probes.system.cpu import read_cpu
from linkgauge.probes.system.node import read_node
from linkgauge.probes.system.numa import read_numa

Reader = Callable[[Host], Iterator[Record]]

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
MD = "sys/class/block/md0/md"
FILES: Mapping[Reader, list[str]] = {
    read_node: [
        "proc/sys/kernel/hostname",
        "proc/sys/kernel/osrelease",
        "proc/cpuinfo",
        "sys/hypervisor/type",
        *(f"sys/class/dmi/id/{name}" for name in ("sys_vendor", "product_name", "board_name", "bios_version")),
        "proc/device-tree/hypervisor/compatible",
        "sys/class/misc/kvm",
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "run/systemd/container",
        "proc/1/cgroup",
        "proc/2/comm",
    ],
    read_cpu: [
        "proc/cpuinfo",
        f"{CPU}/online",
        *(
            f"{CPU}/cpu{n}/topology/{name}"
            for n in (0, 1)
            for name in ("physical_package_id", "package_cpus_list", "core_siblings_list", "core_cpus_list")
        ),
    ],
    read_numa: [
        f"{NODE}/online",
        *(f"{NODE}/node{n}/{name}" for n in (0, 1) for name in ("cpulist", "meminfo", "distance")),
    ],
    read_nvme: [f"sys/class/nvme/nvme0/{name}" for name in ("model", "firmware_rev", "state", "transport", "address")],
    read_disks: [
        f"sys/class/block/{name}"
        for name in ("sda/size", "sda/device/model", "sda/queue/rotational", "sda1/size", "dm-0")
    ],
    read_disk_traffic: [f"sys/class/block/{name}/stat" for name in ("sda", "sda1", "nvme0n1")],
    read_arrays: [
        *(f"{MD}/{name}" for name in ("level", "array_state", "raid_disks", "degraded", "dev-sda/state", "dev-sdb")),
        "sys/class/block/md1",
    ],
    read_mounts: ["proc/1/mounts", "proc/self/mounts", "proc/mounts"],
}
CPUINFO = b"processor\t: 0\nmodel name\t: \x07\nphysical id\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t: x\n"
texts = (
    st.sampled_from([b"", b"0", b"1", b"-1", b"0-1", b"0,0", b"10 21", b"MemTotal: 1 kB", b"2 (1)", b"faulty", CPUINFO])
    | st.sampled_from(
        [b"/dev/sda / ext4 rw 0 0", b"a /b\\377\\000 nfs", b"processor : 0\nflags : \n\nCPU implementer:"]
    )
    | st.text(max_size=60).map(str.encode)
    | st.binary(max_size=60)
)


@pytest.mark.parametrize("reader", FILES, ids=lambda reader: reader.__name__)
@given(data=st.data())
def test_any_bytes(reader: Reader, data: st.DataObject) -> None:
    paths = data.draw(st.lists(st.sampled_from(FILES[reader]), unique=True))
    with TemporaryDirectory() as root:
        for path in paths:
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_bytes(data.draw(texts))
        for said in reader(Live(root)):
            assert decode(encode(said)) == said
