"""What people hold of a machine, put together: files, folders, archives, a paste, trees."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from linkgauge.agent.given import collect, trees
from linkgauge.agent.inputs import BadInput, given
from linkgauge.agent.pipeline import look
from linkgauge.models.facts import Event, Node, Setting
from linkgauge.models.site import Site
from linkgauge.probes.entries import Link, Refused

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
    source = given([str(path) for path in paths])
    case = look(source.host, source.readers, Site())
    return {kind: sorted(case.of(kind)) for kind in (Event, Setting) if case.of(kind)}


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
    files = {"node7/proc/sys/kernel/hostname": "node7\n", "node7/sys/class/dmi/id/product_name": "X1\n",
             "node7/dmesg.txt": XID}  # fmt: skip
    (tmp_path / "node7.tar.gz").write_bytes(packed(files))
    source = given([str(tmp_path / "node7.tar.gz")])
    case = look(source.host, source.readers, Site())
    node = case.of(Node)["node"]
    assert (node.hostname, node.product, len(case.of(Event)), case.origin) == ("node7", "X1", 1, "dumps")


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "bad.tar.gz").write_bytes(b"\x1f\x8brubbish")
    (tmp_path / "link").symlink_to("/etc/hostname")
    (tmp_path / "log").write_text(XID)
    entries = collect([str(tmp_path)]).entries
    assert entries["binary"] == Refused(None, "a binary file; captures and dumps are text")
    assert isinstance(entries["bad.tar.gz"], Refused)
    assert entries["link"] == Link("/etc/hostname")
    assert len(facts(tmp_path)[Event]) == 1


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.gz", b"\x1f\x8brubbish", "--from {path}: an archive that cannot be read: "),
        ("x.bin", bytes(range(256)) * 20, "--from {path}: a binary file"),
        ("x.txt", b"nothing that is known", "--from {path}: neither a capture"),
        ("none", None, "--from {path}: No such file or directory"),
    ],
)
def test_a_single_file_must_be_something(tmp_path: Path, name: str, content: bytes | None, why: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        given([str(path)])
    assert str(refused.value).startswith(why.format(path=path))


def test_where_a_tree_stands() -> None:
    assert trees({"a/sys/x": "", "a/proc/y": "", "b": ""}) == ("a/",)
    assert trees({"sys/x": "", "proc/y": ""}) == ("",)
    assert trees({"a/sys/x": "", "b/proc/y": ""}) == ()
