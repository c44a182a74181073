"""Reads of disks: plans, results of a child process for real files and devices, and failures."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.machine import Disk, Numa
from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.disk import data_blocks, direct_io, disk_read
from linkgauge.probes.measure.disk.data_blocks import BLOCK, Block
from linkgauge.probes.measure.disk.disk_read import plan
from linkgauge.probes.measure.probe import Effort, Probe, Scope
from linkgauge.probes.storage.block_mounts import disk_of, mounted_folder
from tests.support.nodes.disk_topologies import ARRAY, DISKS, report_on
from tests.support.nodes.small_nodes import bridge, function, observation, report_of
from tests.support.programs import fake_tools
from tests.support.programs.live_probes import LONGEST

pytestmark = pytest.mark.slow

SIZE = 160 << 20  # bytes: more than the smallest file that is read, and enough of a fast disk
_TRIES = 5


def asked(*args: str) -> list[Record]:
    return list(Live().call("disk_read", *args, deadline=LONGEST))


def planned(devices: str, effort: Effort = "quick", ends: set[str] | None = None, **wanted: object) -> list[Probe]:
    report = report_on(devices)
    known = {one.id for one in report.topology.devices}
    return list(plan(report, Scope(effort=effort, ends=frozenset(known if ends is None else ends), **wanted)))  # type: ignore[arg-type]


def test_local_disks_are_read_and_those_of_others_are_not() -> None:
    """On a cloud's node, network disks and disks of the hypervisor are not read."""
    (probe,) = planned(DISKS)
    assert (probe.name, probe.args) == ("disk_read", ("disks", "quick", "nvme0n1", "nvme1n1"))
    assert ("disk", "host") in probe.kinds
    assert probe.seconds < 2
    assert probe.bytes == 2 * 4 << 30
    assert planned(DISKS, "passive") == []


def test_each_disk_alone_at_the_full_level_and_only_those_that_are_wanted() -> None:
    assert [probe.args for probe in planned(DISKS, "full")] == [
        ("disks", "full", "nvme0n1"),
        ("disks", "full", "nvme1n1"),
        ("gdsio", "full", "nvme0n1", "gpu0=0000:05:00.0", "nvme1n1", "gpu0=0000:05:00.0"),
    ]
    assert [probe.args for probe in planned(DISKS, ends={"nvme1n1"})] == [("disks", "quick", "nvme1n1")]
    assert [probe.args for probe in planned(DISKS, ends={"0000:02:00.0"})] == [("disks", "quick", "nvme1n1")]


def test_whose_gpus_they_are_is_told_to_what_makes_contexts_on_them() -> None:
    args = [probe.args for probe in planned(DISKS, "full", owned=True)]
    assert [words[-1] for words in args] == ["nvme0n1", "nvme1n1", "owned"]


def test_an_array_stands_for_its_members_until_everything_is_measured() -> None:
    assert [probe.args for probe in planned(ARRAY)] == [("disks", "quick", "md0")]
    assert [probe.args[2] for probe in planned(ARRAY, "full")] == ["nvme0n1", "nvme1n1", "md0"]


def test_what_is_named_is_read_and_written() -> None:
    probes = planned(DISKS, ends=set(), mounts=("/data",), write_to="/scratch")
    assert [probe.args for probe in probes] == [("mount", "quick", "/data"), ("write", "quick", "/scratch")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a file of random bytes, that was written long ago."""
    place = mounted_folder(Live(), str(tmp_path))
    if place is None or place.device is None:
        pytest.skip(f"the folder of tests lies on no disk ({place.fstype if place else 'unknown'})")
    file = tmp_path / "secret name"
    part = os.urandom(1 << 20)
    with file.open("wb") as stream:
        stream.writelines([part] * (SIZE >> 20))
        os.fsync(stream.fileno())
    os.utime(file, (0, 0))
    return tmp_path


def measured(folder: Path) -> list[Observation]:
    """The answer about a folder. Other tests may take the whole disk for a second, and too little data is no rate."""
    found: list[Observation] = []
    for _ in range(_TRIES):
        found = [one for one in asked("mount", "quick", str(folder)) if isinstance(one, Observation)]
        if len(found) > 1:
            break
    return found


def test_the_rate_of_a_file_that_holds_data(data: Path) -> None:
    rate, moved = measured(data)
    assert isinstance(rate.about, Flow)
    assert (rate.about.op, rate.about.ends[1], rate.about.size) == ("read", "host", None)
    assert (rate.quantity, rate.unit, rate.busy, rate.evidence.source) == ("rate", "bytes_per_second", True, "preadv")
    assert 1e5 < rate.value < 1e12
    assert moved.about == rate.about.ends[0]
    assert moved.value % BLOCK == 0
    assert 16 * BLOCK <= moved.value <= SIZE
    assert "secret" not in rate.evidence.text


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_fio_reads_the_same(data: Path) -> None:
    """Too little of it follows each other in the file of the other tests."""
    file = data / "secret name"
    with file.open("ab") as stream:
        stream.writelines([os.urandom(1 << 20)] * 200)
        os.fsync(stream.fileno())
    os.utime(file, (0, 0))
    rates = [one for one in asked("mount", "full", str(data)) if isinstance(one, Observation) and one.busy]
    assert [(one.quantity, one.evidence.source) for one in rates] == [("rate", "fio")]
    assert rates[0].evidence.text.startswith("fio-")


def test_a_file_of_zeros_is_told_apart(data: Path) -> None:
    file = data / "secret name"
    with file.open("r+b") as stream:
        stream.write(bytes(SIZE))
        os.fsync(stream.fileno())
    os.utime(file, (0, 0))
    zeros = [one for one in measured(data) if one.unit == "share"]
    assert [(one.quantity, one.value) for one in zeros] == [("zeros", 1.0)]


def test_what_was_over_at_once_tells_no_rate() -> None:
    """64 MiB at 7 GB/s are 9 ms, of which threads that begin and end are a part."""
    short = direct_io.Transfer(bytes=64 * BLOCK, seconds=0.009, blocks=64)
    lost, moved = disk_read.results(Flow("read", ("nvme0n1", "host")), "nvme0n1", short, 8)
    assert isinstance(lost, NotChecked)
    assert lost.why == "too little data for a rate: 64 blocks of 1 MiB in 0.01 s, 8 at a time, past the page cache"
    assert isinstance(moved, Observation)
    assert (moved.quantity, moved.value) == ("bytes_moved", 64 * BLOCK)


def test_what_takes_the_place_of_a_file_is_not_opened(data: Path) -> None:
    """Whoever owns the folder may do that between the look and the reading, and root reads."""
    (data / "device").mkdir()
    (data / "secret name").rename(data / "device/null")
    (data / "device").rename(data / "before")
    (data / "device").symlink_to("/dev")
    (data / "link").symlink_to(data / "before/null")
    for name in ("device/null", "link", "before"):
        with pytest.raises(OSError, match="it was replaced"):
            data_blocks.open_direct(str(data / name))
    os.close(data_blocks.open_direct(str(data / "before/null")))


def test_holes_and_files_that_are_being_written_hold_nothing(data: Path) -> None:
    (data / "secret name").unlink()
    with (data / "holes").open("wb") as stream:
        stream.truncate(SIZE)
    with (data / "reserved").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, SIZE)
    for name in ("holes", "reserved"):
        os.utime(data / name, (0, 0))
    (data / "new").write_bytes(os.urandom(SIZE))
    (lost,) = asked("mount", "quick", str(data))
    assert isinstance(lost, NotChecked)
    assert lost.why.startswith("no file of 64 MiB and more that holds data was found on ")
    assert "--mount" in (lost.how or "")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("mount", "quick", "/nowhere"), "there is no such folder"),
        (("disks", "quick", "nvme99n1"), "/dev/nvme99n1: No such file or directory"),
        (("mount", "quick", "/proc"), "proc on /proc is on no disk visible here"),
        (("write", "quick", "/proc"), "proc on /proc is on no disk visible here"),
        (("write", "quick", "/nowhere"), "/nowhere: No such file or directory"),
    ],
)
def test_what_cannot_be_measured_is_said(args: tuple[str, ...], why: str) -> None:
    (lost,) = asked(*args)
    assert isinstance(lost, NotChecked)
    assert lost.why.endswith(why)


def test_what_is_written_is_gone(data: Path) -> None:
    before = sorted(os.listdir(data))
    said = asked("write", "quick", str(data))
    if isinstance(said[0], NotChecked):
        pytest.skip(said[0].why)  # a full disk, a file system without O_TMPFILE
    rate, moved = said
    assert isinstance(rate, Observation)
    assert isinstance(rate.about, Flow)
    assert rate.about.ends[0] == "host"
    assert isinstance(moved, Observation)
    assert sorted(os.listdir(data)) == before


def test_a_writer_that_is_killed_leaves_no_file(data: Path) -> None:
    before, free = sorted(os.listdir(data)), shutil.disk_usage(data).free
    command = [sys.executable, "-m", "linkgauge.probes.calls.entrypoint", "disk_read", "write", "full", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        if not _waited_for(child, str(data)):
            pytest.skip("it was over before it could be seen")
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert sorted(os.listdir(data)) == before
    assert shutil.disk_usage(data).free > free - (512 << 20)


def _waited_for(child: subprocess.Popen[bytes], folder: str) -> bool:
    """Whether it has a file without a name there."""
    while child.poll() is None:
        for name in os.listdir(f"/proc/{child.pid}/fd"):
            try:
                path = os.readlink(f"/proc/{child.pid}/fd/{name}")
            except OSError:
                continue
            if path.startswith(folder) and path.endswith("(deleted)"):
                return True
        time.sleep(0.01)
    return False


def test_a_full_disk() -> None:
    """Nothing is as full as /dev/full."""
    file = os.open("/dev/full", os.O_WRONLY)
    moved = direct_io.write(file, 64 * BLOCK, 8, 10.0)
    os.close(file)
    assert moved.failed
    assert moved.failed.strerror == "No space left on device"
    assert moved.bytes == 0


def test_a_file_that_becomes_shorter_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(40 * BLOCK))
    file = os.open(path, os.O_RDONLY)
    blocks = [Block(file, number * BLOCK) for number in range(40)]
    os.truncate(path, 20 * BLOCK)
    moved = direct_io.read(blocks, 2, 100.0)
    os.close(file)
    assert moved.failed
    assert "shorter" in (moved.failed.strerror or "")
    assert moved.blocks >= 18


GDSIO = (
    "IoType: READ XferType: GPUD Threads: 8 DataSetSize: 81920/81920(KiB) IOSize: 1024(KiB) Throughput: 5.000000 "
    "GiB/sec, Avg_Latency: 1.0 usecs ops: 80 total_time 1.0 secs"
)


def test_gdsio_reads_into_a_gpu(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that it is given lies on the disk, which its answer does not name."""
    tools = data / "tools"
    tools.mkdir()
    place = mounted_folder(Live(), str(data))
    disk = disk_of(Live(), place.device) if place and place.device else ""
    if place and place.point != "/" and disk == "":
        pytest.skip("no disk")
    fake_tools.put(tools, monkeypatch, "gdsio", f"#!/bin/sh\necho '{GDSIO}'\n")
    said = asked("gdsio", "quick", disk, "gpu3=0000:1b:00.0")
    if isinstance(said[0], NotChecked):
        pytest.skip(said[0].why)  # no other large file on this disk
    (rate,) = said
    assert isinstance(rate, Observation)
    assert (rate.about, rate.value) == (Flow("read", (disk, "gpu3")), 5 * (1 << 30))


@pytest.mark.parametrize("prints", ["{}", "rubbish", '{"fio version": "fio-3.33", "jobs": [{}], "disk_util": []}'])
def test_a_fio_that_tells_nothing(data: Path, monkeypatch: pytest.MonkeyPatch, prints: str) -> None:
    """What is read without it stands in its place."""
    with (data / "secret name").open("ab") as stream:
        stream.writelines([os.urandom(1 << 20)] * 200)
        os.fsync(stream.fileno())
    os.utime(data / "secret name", (0, 0))
    tools = data / "tools"
    tools.mkdir()
    fake_tools.put(tools, monkeypatch, "fio", f"#!/bin/sh\necho '{prints}'\n")
    lost, rate, moved = asked("mount", "full", str(data))
    assert isinstance(lost, NotChecked)
    assert (lost.what, lost.why) == ("fio", "its output contains no rate")
    assert isinstance(rate, Observation)
    assert rate.evidence.source == "preadv"
    assert isinstance(moved, Observation)


def test_a_slow_disk_is_told() -> None:
    card = replace(function("0000:01:00.0", "0000:00:01.0"), pci_class=0x010802, vendor=0x144D, width=4, max_width=4)
    numa, slot = Numa(key="numa0", cpus=(0,)), replace(bridge("0000:00:01.0", "pci0000:00"), numa=0)
    disk = Disk(key="nvme0n1", address=card.key, controller="nvme0", model="ours")
    said: list[Record] = [numa, slot, card, disk, observation(Flow("read", ("nvme0n1", "host")), "rate", 1e9)]
    (found,) = report_of(said).findings
    assert (found.code, found.subject, found.observed, found.basis) == (
        "storage-slow",
        "nvme0n1-host",
        1e9,
        "capability",
    )


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A block device, and the file behind it: half random bytes, half nothing."""
    if os.geteuid() or not shutil.which("losetup") or not os.path.exists("/dev/loop-control"):
        pytest.skip("a loop device needs root, losetup and the kernel's loop driver")
    image = tmp_path / "image"
    image.write_bytes(os.urandom(128 * BLOCK))
    os.truncate(image, 256 * BLOCK)
    made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(made.stderr.strip())
    device = made.stdout.strip()
    yield device, image
    subprocess.run(["losetup", "-d", device], check=True)


def test_a_disk_without_files_is_read_where_it_holds_something(loop: tuple[str, Path]) -> None:
    device, _ = loop
    with data_blocks.closing(blocks := data_blocks.of_device(device, 256 * BLOCK)):
        assert 120 <= len(blocks) <= 128
        assert max(block.offset for block in blocks) < 128 * BLOCK
    rate, moved = asked("disks", "quick", os.path.basename(device))
    assert isinstance(rate, Observation)
    assert rate.about == Flow("read", (os.path.basename(device), "host"))
    assert isinstance(moved, Observation)


def test_a_disk_that_was_trimmed(loop: tuple[str, Path]) -> None:
    device, image = loop
    os.truncate(image, 0)
    os.truncate(image, 256 * BLOCK)
    (lost,) = asked("disks", "quick", os.path.basename(device))
    assert isinstance(lost, NotChecked)
    assert lost.why == f"{device} holds hardly anything but zeros: it was trimmed, or never written"


def test_a_disk_that_disappears(loop: tuple[str, Path]) -> None:
    device, image = loop
    with data_blocks.closing(blocks := data_blocks.of_device(device, 256 * BLOCK)):
        os.truncate(image, 0)
        moved = direct_io.read(blocks, 4, 100.0)
    assert moved.failed
    assert moved.failed.strerror == "Input/output error"
    (lost,) = asked("disks", "quick", os.path.basename(device))
    assert isinstance(lost, NotChecked)
    assert lost.why.endswith(f"; {device}: Input/output error")


def test_a_file_system_that_is_full(loop: tuple[str, Path], tmp_path: Path) -> None:
    device, _ = loop
    folder = tmp_path / "mounted"
    folder.mkdir()
    made = subprocess.run(["mkfs.ext4", "-q", device], capture_output=True, text=True)
    if made.returncode or subprocess.run(["mount", device, folder], capture_output=True).returncode:
        pytest.skip("no file system could be made and mounted")
    try:
        (lost,) = asked("write", "quick", str(folder))
    finally:
        subprocess.run(["umount", folder], check=True)
    assert isinstance(lost, NotChecked)
    assert (lost.what, lost.subject) == ("disk_write", os.path.basename(device))
    assert lost.why.endswith(f"are free on {folder}: too little to write a test file")
