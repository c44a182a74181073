"""Archives of dumps (tar, zip, gzip, bzip2, xz), unpacked in memory: nothing is written, so no path leads anywhere.

What is too much is refused: an archive of a few kilobytes can hold terabytes of zeros.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from ...host.entries import Entry, Link, Refused

MOST_BYTES = 256 << 20  # of all files together, unpacked: sosreports have some tens of MB of text
MOST_FILES = 20_000
_MEMBERS_A_FILE = 5  # folders, devices and files that come again count too, and there may be so many times as many
_MOST_ENDS = 8  # how often a stream is read at its end
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
# RuntimeError: passwords, NotImplementedError: methods that zipfile has not, MemoryError: xz with huge dictionaries.


class TooMuch(ValueError):
    """More than is read of any archive: a sentence."""


def is_archive(head: bytes) -> bool:
    """By the first 512 bytes of a file."""
    return head.startswith((*_OPENERS, _ZIP, _ZSTD)) or head[257:262] == b"ustar"


def unpack(name: str, content: bytes) -> dict[str, Entry]:
    """The files of an archive by their paths, as text; links as links. ValueError says why it cannot be read.

    Of an archive that was cut what came before the cut is there, and "" holds why there is no more.
    """
    entries: dict[str, Entry] = {}
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
                entries[clean or "a path to nowhere"] = Refused(
                    None, f"its path in the archive leads out of it: {path[:100]}"
                )
            elif clean:
                entries[clean] = entry.decode("utf-8", "replace") if isinstance(entry, bytes) else entry
    except TooMuch:
        raise
    except _BROKEN as broken:
        if not entries:
            raise ValueError(f"an archive that cannot be read: {broken or type(broken).__name__}") from None
        entries["where the archive breaks off"] = Refused(None, f"the archive ends too soon: {broken}")
    return entries


class _Limited(io.BufferedIOBase):
    """A stream that ends where no collection of dumps goes on.

    tarfile goes by what a header says: it skips a petabyte of a file of a kilobyte read by read, and keeps all members.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.left, self.ends = stream, 2 * MOST_BYTES, 0  # headers and padding count here

    def read(self, size: int | None = -1, /) -> bytes:
        data = self.stream.read(-1 if size is None else size)
        self.left -= len(data)
        self.ends += not data
        if self.left < 0:
            raise _too_long()
        if self.ends > _MOST_ENDS:
            raise EOFError("a file in it is longer than the archive")
        return data


def _too_long() -> TooMuch:
    return TooMuch(f"unpacks to more than {MOST_BYTES >> 20} MB, which no collection of dumps does")


def _counted(number: int) -> None:
    if number > _MEMBERS_A_FILE * MOST_FILES:
        raise TooMuch(f"holds more than {_MEMBERS_A_FILE * MOST_FILES} entries")


def _members(name: str, content: bytes) -> Iterator[tuple[str, bytes | Link]]:
    if content.startswith(_ZSTD):
        raise ValueError("zstd is not read here: unpack it first (zstd -d)")
    if content.startswith(_ZIP):
        yield from _of_zip(content)
        return
    opener = next((opener for magic, opener in _OPENERS.items() if content.startswith(magic)), None)
    stream: IO[bytes] = opener(io.BytesIO(content)) if opener else io.BytesIO(content)
    head = stream.read(512)
    stream.seek(0)
    if head[257:262] == b"ustar":
        yield from _of_tar(_Limited(stream))
    elif opener:
        yield _plain(name), _whole(stream)
    else:
        raise ValueError("no archive that is known here")


def _of_tar(stream: _Limited) -> Iterator[tuple[str, bytes | Link]]:
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive):
            _counted(number)
            if member.issym() or member.islnk():
                target = member.linkname if member.issym() else f"/{member.linkname}"
                yield member.name, Link(target)
            elif member.isfile() and (file := archive.extractfile(member)):
                yield _opened(member.name, _whole(file))


def _of_zip(content: bytes) -> Iterator[tuple[str, bytes | Link]]:
    _counted(content.count(_ENTRY_OF_ZIP))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            if info.filename and not info.filename.endswith("/"):  # zipfile breaks at a name that is empty
                with archive.open(info) as file:
                    yield _opened(info.filename, _whole(file))


def _opened(name: str, content: bytes) -> tuple[str, bytes]:
    """A compressed log in an archive, opened."""
    opener = next((opener for magic, opener in _OPENERS.items() if content.startswith(magic)), None)
    if opener is None:
        return name, content
    try:
        return _plain(name), _whole(opener(io.BytesIO(content)))
    except _BROKEN:
        return name, b""


def _whole(file: IO[bytes]) -> bytes:
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _too_long()
    return content


def _plain(name: str) -> str:
    stem, dot, end = posixpath.basename(name).rpartition(".")
    short = stem if dot and end in ("gz", "bz2", "xz") else posixpath.basename(name)
    return posixpath.join(posixpath.dirname(name), short)
