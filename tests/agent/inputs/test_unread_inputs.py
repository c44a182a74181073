"""Inputs that are not read: none replaces another one, each has a line, and none of them leaves the verdict ok."""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import signal
import tarfile
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from linkgauge.agent.inputs.dump_files import read_dumps
from linkgauge.agent.inputs.resolve import from_paths, live
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.models.facts.reason import Reason
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node
from tests.support.nodes.trees import write
from tests.support.unprivileged import run_as_user

XID = "[    1.0] NVRM: Xid (PCI:0000:1e:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"
QUIET = "[    1.0] pci 0000:1e:00.0: BAR 0: assigned\n"
BROKEN = "[device.gpu1]\nwidth = 8\n"


def report_of(*paths: Path) -> Report:
    source = from_paths([str(path) for path in paths])
    return diagnose(source.host, source.readers, measure_nothing, Site()).report


def unread(report: Report) -> list[str]:
    return [one.subject for one in report.not_checked if one.what == "dump" and one.reason is Reason.INCOMPLETE]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "node" / "good.capture"
    path.parent.mkdir()
    path.write_text(dump(node("hgx-h100")))
    return path


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """Two logs of one name."""
    paths = tmp_path / "a" / "dmesg.txt", tmp_path / "b" / "dmesg.txt"
    for path, text in zip(paths, (XID, QUIET), strict=True):
        path.parent.mkdir()
        path.write_text(text)
    return paths


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_files_of_one_name_are_all_read(good: Path, logs: tuple[Path, Path], order: tuple[int, ...]) -> None:
    paths = [(good, *logs)[number] for number in order]
    assert report_of(*paths).verdict == "failed"
    assert {"good.capture", "a/dmesg.txt", "b/dmesg.txt"} <= {*read_dumps([str(path) for path in paths]).entries}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_folders_of_one_name_are_all_read(tmp_path: Path, good: Path, order: tuple[int, ...]) -> None:
    folders = [tmp_path / "a" / "logs", tmp_path / "b" / "logs"]
    for folder, text in zip(folders, (XID, QUIET), strict=True):
        folder.mkdir(parents=True)
        (folder / "dmesg.txt").write_text(text)
    assert report_of(good, *(folders[number] for number in order)).verdict == "failed"


def test_a_path_that_is_given_twice_is_read_once(logs: tuple[Path, Path]) -> None:
    assert [name for name in read_dumps([str(logs[0])] * 2).entries if name] == ["dmesg.txt"]


def test_a_second_capture_is_named_and_prevents_ok(tmp_path: Path, good: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "n.capture").write_text(good.read_text())
    report = report_of(tmp_path / "x" / "n.capture", tmp_path / "y" / "n.capture")
    assert (report.verdict, unread(report)) == ("unknown", ["y/n.capture"])


def test_a_log_with_the_name_of_a_file_of_the_capture_is_read(good: Path) -> None:
    write(good.parent, {"dev/kmsg": XID.rstrip()})
    assert report_of(good.parent).verdict == "failed"


def test_a_log_beside_the_folders_of_another_machine_is_read(good: Path) -> None:
    write(good.parent, {"dmesg.txt": XID.rstrip(), "sys/class/x": "1", "proc/y": "1"})
    report = report_of(good.parent)
    assert (report.verdict, unread(report)) == ("failed", ["."])


def test_a_log_beside_a_tree_with_a_log_of_the_same_name(tmp_path: Path) -> None:
    write(tmp_path / "all", {"n1/sys/class/x": "1", "n1/proc/y": "1", "n1/dmesg.txt": QUIET, "dmesg.txt": XID.rstrip()})
    assert [one.code for one in report_of(tmp_path / "all").findings if one.severity == "critical"] == ["gpu-xid"]


def _link(folder: Path) -> None:
    (folder.parent / "dmesg.txt").write_text(XID)
    (folder / "dmesg.txt").symlink_to(folder.parent / "dmesg.txt")


UNREAD: dict[str, Callable[[Path], object]] = {
    "a link out of the folder": _link,
    "a pipe": lambda folder: os.mkfifo(folder / "dmesg"),
    "binary bytes": lambda folder: (folder / "dmesg.txt").write_bytes(XID.encode() + bytes(range(32)) * 20),
    "a compressed file that was cut": lambda folder: (folder / "dmesg.gz").write_bytes(
        gzip.compress(XID.encode())[:40]
    ),
    "a damaged archive": lambda folder: (folder / "logs.tar.gz").write_bytes(b"\x1f\x8brubbish"),
}


@pytest.mark.parametrize("what", UNREAD)
def test_a_file_that_is_not_read_prevents_ok(good: Path, what: str) -> None:
    UNREAD[what](good.parent)
    report = report_of(good.parent)
    assert (report.verdict, len(unread(report))) == ("unknown", 1)


@pytest.mark.parametrize("what", UNREAD)
def test_beside_a_tree_too(tmp_path: Path, what: str) -> None:
    """The machine itself is as under --root."""
    root = tmp_path / "root"
    write(root, node("server-raid").entries)
    before = report_of(root)
    UNREAD[what](root)
    report = report_of(root)
    assert (before.verdict, unread(before)) == ("ok", [])
    assert (report.verdict, len(unread(report))) == ("unknown", 1)


def test_what_is_usual_beside_a_capture_leaves_it_ok(good: Path) -> None:
    """Texts in no known format, links to files and folders that are read, compressed files, an empty file."""
    write(good.parent, {"README": "the dumps of this node", "logs/dmesg.txt": QUIET, "empty": ""})
    (good.parent / "logs" / "old.gz").write_bytes(gzip.compress(QUIET.encode()))
    for name, target in (("latest", "logs"), ("newest.txt", "logs/dmesg.txt"), ("old", "logs/old.gz")):
        (good.parent / name).symlink_to(target)
    report = report_of(good.parent)
    assert (report.verdict, unread(report)) == ("ok", [])


def archived(good: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive with the capture and these members."""
    path = good.parent / "n.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(good, "n/good.capture")
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("info", "content"),
    [
        (member("/etc/dmesg.txt"), XID.encode()),
        (member("../dmesg.txt"), XID.encode()),
        (member("n/dmesg", tarfile.FIFOTYPE), b""),
        (member("n/dmesg", tarfile.CHRTYPE), b""),
        (member("n/dmesg", tarfile.SYMTYPE, "/var/log/dmesg"), b""),
        (member("n/dmesg.gz"), gzip.compress(XID.encode())[:40]),
    ],
    ids=["absolute", "above", "pipe", "device", "link", "cut"],
)
def test_a_member_that_is_not_read_prevents_ok(good: Path, info: tarfile.TarInfo, content: bytes) -> None:
    report = report_of(archived(good, (info, content)))
    assert (report.verdict, len(unread(report))) == ("unknown", 1)


@pytest.mark.parametrize(
    "names", [("n/dmesg", "n/dmesg"), ("n/dmesg", "n/dmesg.gz"), ("n/dmesg.gz", "n/dmesg"), ("./n/dmesg", "n/dmesg")]
)
@pytest.mark.parametrize("texts", [(XID, QUIET), (QUIET, XID)], ids=["first", "last"])
def test_members_of_one_name_are_all_read(good: Path, names: tuple[str, str], texts: tuple[str, str]) -> None:
    contents = [
        gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
        for name, text in zip(names, texts, strict=True)
    ]
    members = [(member(name), content) for name, content in zip(names, contents, strict=True)]
    assert report_of(archived(good, *members)).verdict == "failed"


def test_a_log_behind_a_hard_link_is_read(good: Path) -> None:
    """Tar stores the second name of a file as a link."""
    quiet = archived(
        good, (member("n/dmesg.gz"), gzip.compress(QUIET.encode())), (member("n/b", tarfile.LNKTYPE, "n/dmesg.gz"), b"")
    )
    assert (report_of(quiet).verdict, unread(report_of(quiet))) == ("ok", [])


@pytest.mark.e2e
@pytest.mark.parametrize("closed", ["logs", "logs/dmesg.txt"])
def test_what_this_user_may_not_read_prevents_ok(good: Path, closed: str) -> None:
    write(good.parent, {"logs/dmesg.txt": XID.rstrip()})
    (good.parent / closed).chmod(0)
    try:
        code, text = run_as_user("diagnose", "-v", "--from", str(good.parent))
    finally:
        (good.parent / closed).chmod(0o700)
    assert code == 3
    assert f"dump {closed}\n    why  Permission denied\n    how  run as root" in text
    assert report_of(good.parent).verdict == "failed"


@pytest.mark.e2e
def test_closed_folders_of_a_tree_are_as_under_root(tmp_path: Path) -> None:
    """A device below a folder that was not read may exist: its array has not lost it."""
    write(tmp_path, node("server-raid").entries)
    hidden = [tmp_path / "sys/bus/pci/devices", *(tmp_path / "sys/devices").glob("pci0000*")]
    for folder in hidden:
        folder.chmod(0)
    try:
        results = [
            run_as_user("diagnose", "--brief", *words, str(tmp_path))
            for words in (("--from",), ("--passive", "--root"))
        ]
    finally:
        for folder in hidden:
            folder.chmod(0o700)
    assert [code for code, _ in results] == [3, 3]
    assert [text.splitlines()[:3] for _, text in results][0] == results[1][1].splitlines()[:3]


@pytest.mark.parametrize("absent", ["sys", "sys/bus", "sys/bus/pci", "sys/bus/pci/devices", "proc"])
def test_a_machine_without_sys_or_proc_is_unknown(tmp_path: Path, absent: str) -> None:
    entries = {
        path: one for path, one in node("server-raid").entries.items() if not f"{path}/".startswith(f"{absent}/")
    }
    write(tmp_path, entries)
    for name in ("sys", "proc"):
        (tmp_path / name).mkdir(exist_ok=True)
    source = live(str(tmp_path))
    report = diagnose(source.host, source.readers, measure_nothing, Site()).report
    assert report.verdict == "unknown"
    assert any(one.path in ("proc", "sys/bus/pci/devices") for one in report.not_checked)


def test_a_file_that_waits_is_refused(tmp_path: Path) -> None:
    """Another program holds it with a lease: open() waits 45 seconds for it (fcntl(2), F_SETLEASE)."""
    (tmp_path / "dmesg.txt").write_text(XID)
    descriptor, before = os.open(tmp_path / "dmesg.txt", os.O_RDWR), signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError:
        pytest.skip("this file system has no leases")
    else:
        with pytest.raises(BadInput, match="waits for data or for another program"):
            from_paths([str(tmp_path / "dmesg.txt")])
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


@pytest.mark.e2e
def test_the_queue_of_the_kernels_log_is_refused() -> None:
    """Its end is never reached. Only root may read it."""
    try:
        os.close(os.open("/proc/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        pytest.skip("this user may not read /proc/kmsg")
    code, text = run_as_user("diagnose", "--from", "/proc/kmsg")
    assert code == 64
    assert text.startswith("Error: --from /proc/kmsg: the file waits for data")
