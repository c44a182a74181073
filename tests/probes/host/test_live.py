"""Files of a machine: absent files, refused files, and a root that no path leaves and no file blocks."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.calls.child import Children
from linkgauge.probes.host.host import BIGGEST_FILE, Unreadable
from linkgauge.probes.host.live import Live
from tests.support.mounts import needs_proc
from tests.support.nodes.trees import write

Machine = tuple[Live, Callable[[str], str]]  # and how a path in the folder is called there


@pytest.fixture(params=["this machine", "a root"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """The folder as a root, and as a part of this machine."""
    if request.param == "a root":
        return Live(str(tmp_path)), lambda path: path
    return Live(), lambda path: f"{str(tmp_path.resolve()).strip('/')}/{path}"


def refusal(question: Callable[[str], object], path: str) -> int | None:
    with pytest.raises(Unreadable) as refused:
        question(path)
    assert refused.value.path == path
    assert refused.value.why
    return refused.value.code


def test_text_comes_without_the_white_space_at_its_end(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    (tmp_path / "text").write_bytes(b" 32.0 GT/s\xff\n PCIe \n\n\t")
    (tmp_path / "empty").touch()
    assert host.read(name("text")) == " 32.0 GT/s�\n PCIe"
    assert host.read(name("empty")) == ""


def test_what_is_not_here(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to("none")
    for path in map(name, ("none", "none/none", "file/none", "dangling", "dangling/none")):
        assert host.read(path) is None
        assert host.list(path) == []
        assert host.resolve(path) is None
    assert host.list(name("file")) == []


def test_a_folder(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    for child in ("b", "a", "c"):
        (tmp_path / "folder" / child).mkdir(parents=True)
    assert host.list(name("folder")) == ["a", "b", "c"]
    assert host.list(name("folder/a")) == []
    assert host.resolve(name("folder/a")) == name("folder/a")


@needs_proc
def test_a_folder_in_the_place_of_a_file_is_refused_and_leaves_nothing_open(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    (tmp_path / "folder").mkdir()
    before = os.listdir("/proc/self/fd")
    assert refusal(host.read, name("folder")) == errno.EISDIR
    assert os.listdir("/proc/self/fd") == before


def test_links_are_followed(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    (tmp_path / "devices/pci0000:00/0000:00:01.0").mkdir(parents=True)
    (tmp_path / "devices/pci0000:00/0000:00:01.0/class").write_text("0x060400\n")
    (tmp_path / "bus").mkdir()
    (tmp_path / "bus/0000:00:01.0").symlink_to("../devices/pci0000:00/0000:00:01.0")
    (tmp_path / "bus/again").symlink_to("./0000:00:01.0/")
    for link in ("bus/0000:00:01.0", "bus/again", "bus/../bus/again"):
        assert host.resolve(name(link)) == name("devices/pci0000:00/0000:00:01.0")
        assert host.list(name(link)) == ["class"]
        assert host.read(name(f"{link}/class")) == "0x060400"


@pytest.mark.parametrize("path", ["one", "one/below", "self", "deep/deep/self"])
def test_loops_are_refused(machine: Machine, tmp_path: Path, path: str) -> None:
    host, name = machine
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "self").symlink_to("self/self")
    (tmp_path / "deep").symlink_to(".")  # not one: it leads to where it is
    for question in (host.read, host.list, host.resolve):
        assert refusal(question, name(path)) == errno.ELOOP
    assert host.resolve(name("deep/deep/deep")) == name("").rstrip("/")


def test_a_pipe_does_not_block(machine: Machine, tmp_path: Path) -> None:
    host, name = machine
    os.mkfifo(tmp_path / "pipe")
    assert host.read(name("pipe")) == ""
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        assert host.read(name("pipe")) == ""
        os.write(writer, b"line\n")
        assert host.read(name("pipe")) == "line"
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    ("size", "code"), [(BIGGEST_FILE, None), (BIGGEST_FILE + 1, errno.EFBIG), (1 << 30, errno.EFBIG)]
)
def test_large_files(machine: Machine, tmp_path: Path, size: int, code: int | None) -> None:
    host, name = machine
    with open(tmp_path / "large", "wb") as file:
        file.truncate(size)  # sparse
    if code is None:
        assert host.read(name("large")) == "\0" * size
    else:
        assert refusal(host.read, name("large")) == code


def test_long_names_are_refused(machine: Machine) -> None:
    host, name = machine
    for question in (host.read, host.list, host.resolve):
        assert refusal(question, name("n" * 300)) == errno.ENAMETOOLONG


def test_links_stay_inside_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/hostname").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "folder").mkdir()
    for link, target in {
        "absolute": "/etc/hostname",
        "etc/absolute": "/etc/hostname",
        "etc/up": "../../../../../../etc/hostname",
        "slash": "/",
        "etc/parent": "..",
        "secret": f"{tmp_path}/secret",
        "etc/secret": "../../secret",
        "out": "../folder",
    }.items():
        (root / link).symlink_to(target)
    host = Live(str(root))
    inside = (
        "absolute",
        "etc/absolute",
        "etc/up",
        "slash/etc/hostname",
        "etc/parent/etc/hostname",
        "../../etc/hostname",
        "slash/absolute",
    )
    for path in inside:
        assert host.read(path) == "inside"
        assert host.resolve(path) == "etc/hostname"
    assert host.list("slash") == host.list("etc/parent") == host.list("..") == sorted(os.listdir(root))
    for path in ("secret", "etc/secret", "../secret", "out", "slash/../folder"):
        assert host.read(path) is None
        assert host.list(path) == []
        assert host.resolve(path) is None


def test_under_a_root_nothing_is_called(tmp_path: Path) -> None:
    """The answer would be about the machine that runs the program."""
    (lost,) = Live(str(tmp_path)).call("statvfs", "/", deadline=30)
    assert isinstance(lost, NotChecked)
    assert (lost.subject, lost.why) == ("node", "only files are read under --root")
    assert lost.how


BOOT = Path("/proc/sys/kernel/random/boot_id")


@pytest.mark.skipif(not BOOT.is_file(), reason="no boot id here")
@pytest.mark.parametrize(
    ("what", "boot", "asked"),
    [
        ("nvml", "this", True),
        ("pci_config", "this", True),
        ("statvfs", "this", False),
        ("journal", "this", False),
        ("nvml", "00000000-0000-0000-0000-000000000000", False),
        ("nvml", "", False),
        ("nvml", None, False),
    ],
)
def test_under_the_root_of_this_machine_its_kernel_answers(
    tmp_path: Path, what: str, boot: str | None, asked: bool
) -> None:
    """A container that reads the host: PCI functions and NVIDIA's driver are in no namespace, mounts are."""
    if boot is not None:
        write(tmp_path, {str(BOOT)[1:]: BOOT.read_text() if boot == "this" else boot})
    told = NotChecked(what="Gpu", subject="gpu0", reason=Reason.OTHER, detail="it was asked")
    host = Live(str(tmp_path), children=Children((sys.executable, "-c", f"print({encode(told)!r})")))
    (said,) = host.call(what, deadline=30)
    assert isinstance(said, NotChecked)
    assert said.why == ("it was asked" if asked else "only files are read under --root")


def test_the_origin_is_what_the_report_says() -> None:
    assert Live().origin == "live"
    assert Live("/tmp", "dumps").origin == "dumps"


@pytest.mark.parametrize(
    ("reads", "text"),
    [
        # The next record was overwritten before it was read: the log starts at the oldest record that is left.
        ([b"6,7,90;old\n", errno.EPIPE, b"6,900,95;new\n", b"6,901,96;newer\n"], "6,900,95;new\n6,901,96;newer"),
        ([errno.EPIPE, errno.EPIPE, b"6,900,95;new\n"], "6,900,95;new"),
        ([b"6,7,90;all\n"], "6,7,90;all"),
        ([errno.EPIPE] * 200, None),
    ],
)
def test_a_log_whose_records_are_overwritten_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[bytes | int], text: str | None
) -> None:
    """/dev/kmsg returns EPIPE once, then goes on (kernel documentation, ABI/testing/dev-kmsg)."""
    (tmp_path / "kmsg").touch()
    answers = iter([*reads, errno.EAGAIN])

    def kernel(descriptor: int, size: int) -> bytes:
        if isinstance(answer := next(answers), int):
            raise OSError(answer, os.strerror(answer))
        return answer

    monkeypatch.setattr(os, "read", kernel)
    if text is None:
        assert refusal(Live(str(tmp_path)).read, "kmsg") == errno.EPIPE
    else:
        assert Live(str(tmp_path)).read("kmsg") == text
