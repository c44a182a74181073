"""The dump files of a machine, combined: files, folders, archives, standard input, trees."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from linkgauge.agent.inputs.dump_files import machine_prefixes, read_dumps
from linkgauge.agent.inputs.resolve import from_paths, live
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.pipeline.diagnose import diagnose, read_snapshot
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver
from linkgauge.models.facts.machine import Event, Net, Node, Pci, Setting
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.entries import Link, UnreadableFile
from linkgauge.probes.host.recorded import Recorded, dump

XID = "[   12.500000] NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus.\n"
LIMITS = "max locked memory       (kbytes, -l) 64\n"


def packed(files: dict[str, str]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return target.getvalue()


def facts(*paths: Path | str) -> dict[type, list[str]]:
    source = from_paths([str(path) for path in paths])
    snapshot = read_snapshot(source.host, source.readers, Site())
    return {kind: sorted(snapshot.of(kind)) for kind in (Event, Setting) if snapshot.of(kind)}


def test_a_file_a_folder_an_archive_and_several_say_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "dmesg.txt").write_text(XID)
    (folder / "limits.txt").write_text(LIMITS)
    (tmp_path / "all.tar.gz").write_bytes(packed({"a/dmesg": XID, "a/ulimit": LIMITS}))
    (tmp_path / "dmesg.gz").write_bytes(gzip.compress(XID.encode()))
    (tmp_path / "both.txt").write_text(f"$ dmesg\n{XID}$ ulimit -a\n{LIMITS}")
    whole = facts(folder)
    assert {kind: len(keys) for kind, keys in whole.items()} == {Event: 1, Setting: 1}
    assert facts(tmp_path / "all.tar.gz") == whole
    assert facts(tmp_path / "both.txt") == whole
    assert facts(tmp_path / "dmesg.gz", folder / "limits.txt") == whole


def test_a_paste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(XID.encode())))
    assert len(facts("-")[Event]) == 1


def test_a_tree_of_a_machine_is_read_as_one(tmp_path: Path) -> None:
    files = {
        "node7/proc/sys/kernel/hostname": "node7\n",
        "node7/sys/class/dmi/id/product_name": "X1\n",
        "node7/dmesg.txt": XID,
    }
    (tmp_path / "node7.tar.gz").write_bytes(packed(files))
    source = from_paths([str(tmp_path / "node7.tar.gz")])
    snapshot = read_snapshot(source.host, source.readers, Site())
    node = snapshot.of(Node)["node"]
    assert (node.hostname, node.product, len(snapshot.of(Event)), snapshot.origin) == ("node7", "X1", 1, "dumps")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "bad.tar.gz").write_bytes(b"\x1f\x8brubbish")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "log").write_text(XID)
    entries = read_dumps([str(tmp_path)]).entries
    assert entries["binary"] == UnreadableFile(None, "a binary file; captures and dumps are text")
    assert isinstance(entries["bad.tar.gz"], UnreadableFile)
    assert entries["link"] == Link("/etc/hostname")
    assert len(facts(tmp_path)[Event]) == 1


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.gz", b"\x1f\x8brubbish", "--from {path}: unreadable archive: "),
        ("x.bin", bytes(range(256)) * 20, "--from {path}: a binary file"),
        ("none", None, "--from {path}: No such file or directory"),
    ],
)
def test_a_single_file_must_be_something(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        from_paths([str(path)])
    assert str(refused.value).startswith(why.format(path=path))


def test_a_text_in_no_known_form_is_unknown(tmp_path: Path) -> None:
    """The same as in a folder."""
    (tmp_path / "x.txt").write_text("nothing that is known")
    for path in (tmp_path / "x.txt", tmp_path):
        source = from_paths([str(path)])
        report = diagnose(source.host, source.readers, measure_nothing, Site()).report
        assert (report.verdict, [gap.subject for gap in report.not_checked]) == ("unknown", ["x.txt"])


def test_folders_that_contain_a_machine() -> None:
    assert machine_prefixes({"a/sys/x": "", "a/proc/y": "", "b": ""}) == ("a/",)
    assert machine_prefixes({"sys/x": "", "proc/y": ""}) == ("",)
    assert machine_prefixes({"a/sys/x": "", "b/proc/y": ""}) == ()


SOS = {
    "sos_commands/kernel/dmesg": XID,
    "sos_commands/pci/lspci_-nnvv": "53:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330] (rev a1)\n",
    "sos_commands/networking/ethtool_eth0": "Settings for eth0:\n\tSpeed: 25000Mb/s\n",
    "proc/cpuinfo": "processor\t: 0\n",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n",
    "sys/class/net/eth0/flags": "0x1003\n",
    "sys/module/nvidia/refcnt": "20\n",
    "var/log/messages": "Nov 21 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:53:00): 48, pid=1, An uncorrectable error\n",
    "var/log/audit/audit.log": "type=LOGIN msg=audit(1): pid=1\n",
}


@pytest.mark.parametrize("packing", ["folder", "nested", "archive"])
def test_a_sosreport(tmp_path: Path, packing: str) -> None:
    """Logs in its tree are read too. Logs of other programs are not reported as unknown dumps."""
    head = "sosreport-n1-2026-11-21-abcdefg"
    for name, text in SOS.items():
        (tmp_path / "in" / head / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / head / name).write_text(text)
    path = {"folder": tmp_path / "in" / head, "nested": tmp_path / "in"}.get(packing, tmp_path / f"{head}.tar.gz")
    if packing == "archive":
        path.write_bytes(packed({f"{head}/{name}": text for name, text in SOS.items()}))
    source = from_paths([str(path)])
    snapshot = read_snapshot(source.host, source.readers, Site())
    assert sorted(event.code for event in snapshot.of(Event).values() if event.code) == [48, 79]
    assert snapshot.of(Net)["eth0"].speed == 25e9 / 8
    assert snapshot.of(Driver)["nvidia"].version == "550.54.15"
    assert list(snapshot.of(Pci)) == ["0000:53:00.0"]
    assert [one for one in snapshot.not_checked if one.what == "dump"] == []


def test_files_beside_a_tree_and_a_second_machine(tmp_path: Path) -> None:
    (tmp_path / "limits.txt").write_text(LIMITS)
    (tmp_path / "a.tar.gz").write_bytes(packed({"a/sys/x": "1", "a/proc/y": "1", "a/dmesg": XID}))
    (tmp_path / "b.tar.gz").write_bytes(packed({"b/sys/x": "1", "b/proc/y": "1", "b/dmesg": XID}))
    source = from_paths([str(tmp_path)])
    snapshot = read_snapshot(source.host, source.readers, Site())
    assert (len(snapshot.of(Event)), list(snapshot.of(Setting))) == (1, ["memlock"])
    assert [(one.subject, one.why) for one in snapshot.not_checked if one.what == "dump"] == [
        ("b.tar.gz/b/", "these files are of another machine than those below a.tar.gz/a/; a report covers one machine")
    ]


@pytest.mark.parametrize("packing", ["folder", "nested", "archive"])
def test_a_tree_without_proc_is_evaluated_as_under_root(tmp_path: Path, packing: str) -> None:
    """Vital checks that the files cannot answer make both unknown."""
    files = {"n1/sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n", "n1/sys/class/dmi/id/product_name": "X1\n"}
    for name, text in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    (tmp_path / "n1.tar.gz").write_bytes(packed(files))
    path = {"folder": tmp_path / "in/n1", "nested": tmp_path / "in"}.get(packing, tmp_path / "n1.tar.gz")
    reports = [
        evaluate(read_snapshot(source.host, source.readers, Site()))
        for source in (from_paths([str(path)]), live(str(tmp_path / "in/n1")))
    ]
    assert reports[0].verdict == reports[1].verdict == "unknown"
    assert reports[0].checks == reports[1].checks


def test_a_capture_and_dumps_together(tmp_path: Path) -> None:
    (tmp_path / "capture").write_text(dump(Recorded(1795230000, {"proc/sys/kernel/hostname": "n1"})))
    (tmp_path / "limits.txt").write_text(LIMITS)
    source = from_paths([str(tmp_path / "limits.txt"), str(tmp_path / "capture")])
    snapshot = read_snapshot(source.host, source.readers, Site())
    assert (snapshot.of(Node)["node"].hostname, snapshot.origin, snapshot.now) == ("n1", "capture", 1795230000)
    assert list(snapshot.of(Setting)) == ["memlock"]


@pytest.mark.parametrize("content", [XID.encode("utf-16"), XID.encode("utf-16-le"), b"\xef\xbb\xbf" + XID.encode()])
def test_encodings(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "dmesg.txt").write_bytes(content)
    assert len(facts(tmp_path / "dmesg.txt")[Event]) == 1
