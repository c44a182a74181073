"""Archives of dumps: every form, links, cuts, bombs, paths that lead outside, rubbish."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.dumps.core import archives
from linkgauge.probes.dumps.core.archives import is_archive, unpack
from linkgauge.probes.host.entries import Link, UnreadableFile

FILES = {"node1/lspci.txt": b"00:00.0 Host bridge\n", "node1/logs/dmesg": b"[    0.000000] Linux\xff\n"}
TEXTS = {name: content.decode("utf-8", "replace").rstrip() for name, content in FILES.items()}


def tar(files: Mapping[str, bytes], mode: str = "w", links: Mapping[str, str] | None = None) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, to in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, to
            archive.addfile(info)
    return target.getvalue()


def zipped(files: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


@pytest.mark.parametrize(
    "content", [tar(FILES), tar(FILES, "w:gz"), tar(FILES, "w:bz2"), tar(FILES, "w:xz"), zipped(FILES)]
)
def test_every_form_of_archive(content: bytes) -> None:
    assert is_archive(content[:512])
    assert unpack("dumps.tar", content) == TEXTS


@pytest.mark.parametrize(("pack", "end"), [(gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz")])
def test_one_file(pack: object, end: str) -> None:
    content = pack(FILES["node1/lspci.txt"])  # type: ignore[operator]
    assert is_archive(content)
    assert unpack(f"nvidia-bug-report.log.{end}", content) == {"nvidia-bug-report.log": "00:00.0 Host bridge"}


def test_compressed_logs_in_an_archive_are_opened() -> None:
    inner = {"report/nvidia-bug-report.log.gz": gzip.compress(b"text"), "report/broken.gz": b"\x1f\x8brubbish"}
    found = unpack("x.tar", tar(inner))
    assert found.pop("report/nvidia-bug-report.log") == "text"
    assert isinstance(found.pop("report/broken.gz"), UnreadableFile)
    assert not found


def test_links_stay_links() -> None:
    found = unpack("x.tar", tar({}, links={"sys/class/net/eth0": "../../devices/eth0"}))
    assert found == {"sys/class/net/eth0": Link("../../devices/eth0")}


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a/../../b"])
def test_paths_that_lead_outside_are_refused_and_named(name: str) -> None:
    found = unpack("x.tar", tar({name: b"x", "good": b"y"}))
    assert found.pop("good") == "y"
    (refused,) = found.values()
    assert isinstance(refused, UnreadableFile)
    assert refused.why == f"its path is outside the archive: {name}"


@pytest.mark.parametrize("form", ["w:gz", "zip"])
def test_bombs_are_refused(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 20)
    zeros = {f"zeros{n}": bytes(300_000) for n in range(10)}
    content = zipped(zeros) if form == "zip" else tar(zeros, form)
    assert len(content) < 100_000
    with pytest.raises(ValueError, match="unpacks to more than 1 MB"):
        unpack("bomb", content)
    with pytest.raises(ValueError, match="unpacks to more than 1 MB"):
        unpack("bomb.gz", gzip.compress(bytes(2 << 20)))


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 5)
    with pytest.raises(ValueError, match="holds more than 5 files"):
        unpack("x", tar({f"f{n}": b"" for n in range(6)}))


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.REGTYPE])
def test_too_many_entries_are_refused_whatever_they_are(kind: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders, devices, the same file many times: nothing of them is stored, and they cost time and memory."""
    monkeypatch.setattr(archives, "MOST_FILES", 5)
    with pytest.raises(ValueError, match="holds more than 10 entries"):
        unpack("x", gzip.compress(header("x", kind) * 30))


def test_too_many_entries_of_a_zip_are_refused_before_they_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_FILES", 5)
    with pytest.raises(ValueError, match="holds more than 10 entries"):
        unpack("x", zipped({f"folder{n}/": b"" for n in range(30)}))


@pytest.mark.parametrize("kind", [b"Z", tarfile.REGTYPE])
def test_a_header_that_claims_a_petabyte(kind: bytes) -> None:
    """To skip its content would take hours."""
    content = header("first") + header("x", kind, 10**15) + bytes(1024)
    entries = unpack("x", content)
    assert entries["first"] == ""
    assert isinstance(entries["where the archive breaks off"], UnreadableFile)


def test_names_of_files_that_unpack_to_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module tarfile stores a PAX header completely, whatever its length."""
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 20)
    content = header("x", tarfile.XHDTYPE, 5 << 20) + bytes(5 << 20)
    with pytest.raises(ValueError, match="unpacks to more than 1 MB"):
        unpack("x", gzip.compress(content))


@pytest.mark.parametrize("name", ["..", "/", "/.."])
def test_a_path_to_nowhere(name: str) -> None:
    (entry,) = unpack("x", tar({name: b"x"})).items()
    assert entry == ("a path to nowhere", UnreadableFile(None, f"its path is outside the archive: {name}"))


def test_an_entry_of_a_zip_without_a_name() -> None:
    """Names end at a zero byte; there is nothing to call it."""
    content = zipped({"Q": b"x", "good": b"y"}).replace(b"Q", b"\0")
    assert unpack("x", content) == {"good": "y"}
    place = content.index(b"PK\x01\x02") + 8  # its flags: encrypted
    assert unpack("x", content[:place] + b"\1" + content[place + 1 :]) == {"good": "y"}


def test_of_an_archive_that_was_cut_the_beginning_is_read() -> None:
    many = {f"f{n}": bytes([65 + n % 26]) * 5000 for n in range(50)}
    content = tar(many)
    found = unpack("x.tar", content[: len(content) // 2])
    whole = [name for name in found if name.startswith("f")]
    assert 10 < len(whole) < 50
    assert isinstance(found["where the archive breaks off"], UnreadableFile)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x28\xb5\x2f\xfdxxxx", "zstd is not supported: unpack the file first"),
        (b"\x1f\x8b" + bytes(20), "unreadable archive: "),
        (b"PK\x03\x04rubbish", "unreadable archive: File is not a zip file"),
        (b"BZhrubbish", "unreadable archive: "),
        (b"plain", "unknown archive format"),
    ],
)
def test_what_cannot_be_unpacked(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=".") as refused:
        unpack("x", content)
    assert why in str(refused.value)


starts = st.sampled_from([b"", b"\x1f\x8b", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\x00", bytes(257) + b"ustar"])


def unpacked(content: bytes) -> Mapping[str, object]:
    """The contents, or nothing if the archive is refused with a sentence."""
    try:
        return unpack("x", content)
    except ValueError as refused:
        return {} if str(refused) else {"": "refused without a word"}


@given(starts, st.binary(max_size=2000))
def test_any_bytes_are_unpacked_or_refused(start: bytes, rest: bytes) -> None:
    assert all(name and not name.startswith("/") and ".." not in name.split("/") for name in unpacked(start + rest))


@given(st.data())
def test_any_cut_and_any_changed_byte(data: st.DataObject) -> None:
    content = bytearray(data.draw(st.sampled_from([tar(FILES, "w:gz"), zipped(FILES), tar(FILES)])))
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert "" not in unpacked(bytes(content[: data.draw(st.integers(0, len(content)))]))
