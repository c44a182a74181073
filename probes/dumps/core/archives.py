"""Archives of dumps (tar, zip, gzip, bzip2, xz), unpacked in memory. No file is written, so no path can escape.

Sizes are limited: an archive of a few kilobytes can contain terabytes of zeros. A stream is
refused as soon as it is much larger than its archive.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from ...host.entries import Entry, Folder, Link, UnreadableFile, free_name
from ...host.texts import is_of_kernel, text_of

MOST_BYTES = 256 << 20  # of all unpacked files together; sosreports contain some tens of MB of text
MOST_FILES = 100_000  # /sys of a large node has some ten thousand files
_MEMBERS_A_FILE = 2  # folders, devices and repeated files count as members
_USUAL, _MOST_TIMES = 32 << 20, 100  # bytes, and times the size of the archive: logs shrink to a tenth
_PIECE = 1 << 20  # bytes of a file that is skipped
_MOST_ENDS = 8  # permitted reads at the end of a stream
_ENTRY_OF_ZIP = b"PK\x01\x02"
_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
_ZIP, _ZSTD = b"PK\x03\x04", b"\x28\xb5\x2f\xfd"
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
)
# RuntimeError: password. NotImplementedError: method unknown to zipfile. MemoryError: xz with a huge dictionary.


class TooMuch(ValueError):
    """The archive exceeds a limit. The text is a sentence for the user."""


def is_archive(head: bytes) -> bool:
    """`head`: the first 512 bytes of a file."""
    return head.startswith((*_OPENERS, _ZIP, _ZSTD)) or head[257:262] == b"ustar"


def unpack(name: str, content: bytes) -> dict[str, Entry]:
    """The contents of an archive by path: texts, links, empty folders, and refused entries. ValueError: the reason why
    it is unreadable.

    If the archive is truncated, the result has the files before the damage and one refused entry with the reason. Two
    different members of one name are two files. Of a file of /sys or /proc the last one is used, as by tar.
    """
    entries: dict[str, Entry] = {}
    numbers: dict[str, int] = {}
    left = MOST_BYTES
    try:
        for path, entry in _members(name, content):
            left -= len(entry) if isinstance(entry, bytes) else 0
            if left < 0:
                raise _too_long()
            if len(entries) >= MOST_FILES:
                raise TooMuch(f"holds more than {MOST_FILES} files")
            clean = posixpath.normpath("/" + path).lstrip("/")
            if ".." in path.split("/") or path.startswith("/"):
                outside = free_name(entries, clean or "a path to nowhere", numbers)
                entries[outside] = UnreadableFile(None, f"its path is outside the archive: {path[:100]}")
            elif clean:
                read = text_of(clean, entry) if isinstance(entry, bytes) else entry
                same = is_of_kernel(clean) or entries.get(clean, read) in (read, Folder())
                entries[clean if same else free_name(entries, clean, numbers)] = read
    except TooMuch:
        raise
    except _BROKEN as broken:
        if not entries:
            raise ValueError(f"unreadable archive: {broken or type(broken).__name__}") from None
        end = free_name(entries, "where the archive breaks off", numbers)
        entries[end] = UnreadableFile(None, f"the archive is truncated: {broken}")
    return _plainly_named(entries)


def _plainly_named(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The entries, with the names of compressed files as without compression, unless another file has that name."""
    plain: dict[str, str] = {}
    taken = {*entries}
    for name, entry in entries.items():
        short = _plain_name(name) if isinstance(entry, str) else name
        if short not in taken:
            plain[name] = short
            taken.add(short)
    return {plain.get(name, name): _followed(name, entry, plain) for name, entry in entries.items()}


def _followed(name: str, entry: Entry, plain: Mapping[str, str]) -> Entry:
    """The entry; a link to a renamed file leads to its new name."""
    if isinstance(entry, Link) and isinstance(entry.target, str):
        folder, target = posixpath.dirname(entry.target), posixpath.join("/", posixpath.dirname(name), entry.target)
        if new := plain.get(posixpath.normpath(target).lstrip("/")):
            return Link(posixpath.join(folder, posixpath.basename(new)))
    return entry


class _Limited(io.BufferedIOBase):
    """A stream with an upper limit on bytes and on reads at its end.

    tarfile trusts the sizes in headers: for a file of one kilobyte it skips a petabyte read by read.
    """

    def __init__(self, stream: IO[bytes], packed: int) -> None:
        self.stream, self.ends = stream, 0
        # twice the limit, because headers and padding count here
        self.left = min(2 * MOST_BYTES, max(_USUAL, _MOST_TIMES * packed))

    def read(self, size: int | None = -1, /) -> bytes:
        data = self.stream.read(self.left + 1 if size is None or size < 0 else min(size, self.left + 1))
        self.left -= len(data)
        self.ends += not data
        if self.left < 0:
            raise _too_long()
        if self.ends > _MOST_ENDS:
            raise EOFError("a file in it is longer than the archive")
        return data


def _too_long() -> TooMuch:
    return TooMuch(
        f"unpacks to more than {MOST_BYTES >> 20} MB or to more than {_MOST_TIMES} times its size, the limits for dumps"
    )


def _check_count(number: int) -> None:
    if number > _MEMBERS_A_FILE * MOST_FILES:
        raise TooMuch(f"holds more than {_MEMBERS_A_FILE * MOST_FILES} entries")


def _members(name: str, content: bytes) -> Iterator[tuple[str, bytes | Link | Folder | UnreadableFile]]:
    if content.startswith(_ZSTD):
        raise ValueError("zstd is not supported: unpack the file first (zstd -d)")
    if content.startswith(_ZIP):
        yield from _zip_members(content)
        return
    opener = _opener(content)
    stream: IO[bytes] = opener(io.BytesIO(content)) if opener else io.BytesIO(content)
    head = stream.read(512)
    stream.seek(0)
    if head[257:262] == b"ustar":
        yield from _tar_members(_Limited(stream, len(content)))
    elif opener:
        yield posixpath.basename(name), _read_all(_Limited(stream, len(content)))
    else:
        raise ValueError("unknown archive format")


def _tar_members(stream: _Limited) -> Iterator[tuple[str, bytes | Link | Folder | UnreadableFile]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive):
            _check_count(number)
            archive.members = []  # type: ignore[attr-defined]  # tarfile keeps all members, which a stream cannot read again
            if member.issym():
                yield member.name, Link(member.linkname)
            elif member.islnk():  # its target is a path from the root of the archive
                yield member.name, Link(posixpath.relpath(f"/{member.linkname}", posixpath.dirname(f"/{member.name}")))
            elif member.isdir():
                yield member.name, Folder()
            elif member.isfile() and member.issparse() and (file := archive.extractfile(member)):
                yield member.name, _decompressed(_read_all(file))
            elif member.isfile():
                yield member.name, _decompressed(_content(archive.fileobj, member))
            else:
                yield member.name, UnreadableFile(None, "not a plain file")


def _content(stream: Any, member: tarfile.TarInfo) -> bytes:
    """The content of a file in a tar stream. TarFile.extractfile takes twice as long for a small file."""
    stream.seek(member.offset_data)
    if member.size > MOST_BYTES:
        for _ in range(MOST_BYTES // _PIECE):  # a wrong size in the header ends the stream
            if len(stream.read(_PIECE)) < _PIECE:
                raise EOFError("a file in it is longer than the archive")
        raise _too_long()
    content: bytes = stream.read(member.size)
    if len(content) < member.size:
        raise EOFError("unexpected end of data")
    return content


def _zip_members(content: bytes) -> Iterator[tuple[str, bytes | Link | Folder | UnreadableFile]]:
    _check_count(content.count(_ENTRY_OF_ZIP))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        every = archive.infolist()
        if sum(info.file_size for info in every) > min(MOST_BYTES, max(_USUAL, _MOST_TIMES * len(content))):
            raise _too_long()
        for info in every:
            if info.filename.endswith("/"):
                yield info.filename, Folder()
            elif info.filename:  # zipfile fails on an empty name
                with archive.open(info) as file:
                    data = _read_all(file)
                link = stat.S_ISLNK(info.external_attr >> 16)
                yield info.filename, Link(data.decode("utf-8", "replace")) if link else _decompressed(data)


def _decompressed(content: bytes) -> bytes | UnreadableFile:
    """The content of a file within an archive, decompressed if it is compressed."""
    opener = _opener(content)
    if opener is None:
        return content
    try:
        return _read_all(_Limited(opener(io.BytesIO(content)), len(content)))
    except TooMuch:
        raise
    except _BROKEN as broken:
        return UnreadableFile(None, f"cannot be decompressed: {broken or type(broken).__name__}")


def _opener(content: bytes) -> Callable[[IO[bytes]], Any] | None:
    return next((opener for magic, opener in _OPENERS.items() if content.startswith(magic)), None)


def _read_all(file: IO[bytes] | _Limited) -> bytes:
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _too_long()
    return content


def _plain_name(name: str) -> str:
    stem, dot, end = posixpath.basename(name).rpartition(".")
    short = stem if dot and end in ("gz", "bz2", "xz") else posixpath.basename(name)
    return posixpath.join(posixpath.dirname(name), short)
