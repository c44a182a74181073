"""Hostile archives, and the checks for them: python -m bench.fuzz.fuzz archives

Paths that lead outside, links, devices, bombs, too many entries, wrong sizes; truncated at any position, with changed
bytes.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import lru_cache
from random import Random

from linkgauge.probes.dumps.core import archives
from linkgauge.probes.dumps.core.archives import is_archive, unpack
from linkgauge.probes.host.entries import Entry, Folder, Link, UnreadableFile

# lower limits for this program: the same archives are refused, and smaller ones are enough
MOST_BYTES, MOST_FILES = 1 << 20, 200
NAMES = (
    "a",
    "node1/lspci.txt",
    "../x",
    "/etc/passwd",
    "a/../../b",
    "..",
    ".",
    "",
    "./a",
    "a//b",
    "a/",
    "a/..",
    "~/x",
    "C:\\x",
    "..\\x",
    "a\0b",
    "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
    "x" * 300,
    "a/" * 90 + "b",
    "\n",
    "é",
    "where the archive breaks off",
    "log.gz",
    "log.xz",
    "log.bz2",
    "sys/x",
    "proc/1/mem",
)
KINDS = (
    tarfile.REGTYPE,
    tarfile.REGTYPE,
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
    tarfile.CONTTYPE,
    b"Z",
    tarfile.GNUTYPE_SPARSE,
)
PAX_NAMES = ("path", "size", "linkpath", "GNU.sparse.map", "comment", "mtime")
PAX_VALUES = ("../../x", "-1", "99999999999999", "x" * 5000, "1,2,3", "nan")
_PACKERS: tuple[Callable[[bytes], bytes], ...] = (
    bytes,
    gzip.compress,
    bz2.compress,
    lambda data: lzma.compress(data, preset=0),
)


def check(content: bytes) -> float:
    """Check that no path leads outside and that the limits hold, or that the archive is refused with a sentence.

    Returns seconds.
    """
    start = time.perf_counter()
    is_archive(content[:512])
    entries, refusal = _unpacked(content)
    took = time.perf_counter() - start
    assert refusal is None or refusal.strip(), "refused without a word"
    assert len(entries) <= MOST_FILES + 1, "more entries than are read of any archive"
    assert sum(len(one) for one in entries.values() if isinstance(one, str)) <= MOST_BYTES, "more than fits"
    for name, one in entries.items():
        assert name.strip("/") == name != "", f"{name!r} is no path"
        assert ".." not in name.split("/"), f"{name!r} leads out"
        assert isinstance(one, str | Link | UnreadableFile | Folder), f"{one!r} is nothing that an archive holds"
    return took


def _unpacked(content: bytes) -> tuple[dict[str, Entry], str | None]:
    """The contents, or the reason for the refusal."""
    try:
        return unpack("fuzz.tar", content), None
    except ValueError as refused:
        return {}, str(refused)


class Archives:
    """The archives of a seed, by number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        archives.MOST_BYTES, archives.MOST_FILES = MOST_BYTES, MOST_FILES

    def number(self, count: int) -> tuple[bytes, Callable[[], float]]:
        """An archive, and its check."""
        random = Random(f"{self.seed} archives {count}")
        content = random.choices(_MAKERS, _WEIGHTS)[0](random)
        if random.random() < 0.5:
            content = _broken(random, content)
        return content, lambda: check(content)


@lru_cache(64)
def _packed(packer: int, content: bytes) -> bytes:
    return _PACKERS[packer](content)


@lru_cache(64)
def _zeros(packer: int, count: int) -> bytes:
    """The content of bombs, compressed once."""
    return _PACKERS[packer](bytes(count))


def _content(random: Random) -> bytes:
    """The content of a member: short, long, an archive, or compressed data that unpacks to a lot."""
    kind = random.random()
    if kind < 0.7:
        return random.randbytes(random.randint(0, 40))
    if kind < 0.8:
        return _zeros(random.randint(1, 3), random.choice((10, 3000, MOST_BYTES // 3, MOST_BYTES + 1)))
    if kind < 0.9:
        return _packed(1, _zeros(1, MOST_BYTES + 1))
    return bytes(random.choice((1000, 60_000, MOST_BYTES + 1 if random.random() < 0.05 else 5)))


def _tar(random: Random) -> bytes:
    target = io.BytesIO()
    form = random.choice((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=target, mode="w", format=form) as archive:
        for _ in range(random.choice((0, 1, 2, 3, 5, 12))):
            info = tarfile.TarInfo(random.choice(NAMES))
            info.type, info.linkname = random.choice(KINDS), random.choice(NAMES)
            content = _content(random) if info.isfile() else b""
            info.size = len(content)
            if form == tarfile.PAX_FORMAT and random.random() < 0.2:
                info.pax_headers = {random.choice(PAX_NAMES): random.choice(PAX_VALUES)}
            try:
                archive.addfile(info, io.BytesIO(content))
            except (ValueError, OSError, UnicodeError):
                continue  # a name that this archive format cannot hold
    return random.choice(_PACKERS)(target.getvalue())


def _sizes(random: Random) -> bytes:
    """A member whose header has a wrong size and a correct checksum."""
    info = tarfile.TarInfo(random.choice(NAMES) or "x")
    info.type = random.choice(
        (*KINDS, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
    )
    info.size = random.choice((1, 511, 10**6, 8**11 - 1, 10**15, 2**62))
    head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    packer, zeros = random.randrange(3), random.choice((0, 512, 5000, MOST_BYTES, 3 * MOST_BYTES))
    if packer == 0:
        return head + bytes(min(zeros, 50_000))
    return _PACKERS[packer](head) + _zeros(packer, zeros)  # such files continue where one ends


def _many(random: Random) -> bytes:
    """At least as many members as the limit, with one name or many, some without content."""
    count, kind, same = random.choice((150, 200, 201, 260, 1100)), random.choice(KINDS), random.random() < 0.5
    info = tarfile.TarInfo("x")
    info.type = kind
    blocks = []
    for number in range(count):
        info.name = "same" if same else f"n{number}"
        blocks.append(info.tobuf(tarfile.USTAR_FORMAT))
    return random.choice(_PACKERS)(b"".join(blocks) + bytes(1024))


def _zip(random: Random) -> bytes:
    target = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(target, "w") as archive:
        warnings.simplefilter("ignore")  # about duplicate names
        for _ in range(random.choice((0, 1, 2, 5, 250 if random.random() < 0.1 else 3))):
            info = zipfile.ZipInfo(random.choice(NAMES))
            info.compress_type = random.choice(
                (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
            )
            info.external_attr = random.choice((0, 0o120777 << 16, 0o060666 << 16, 0x10))
            archive.writestr(info, _content(random))
    content = bytearray(target.getvalue())
    place = content.rfind(b"PK\x01\x02")
    if place >= 0 and random.random() < 0.4:  # flags, method, sizes or offset of the last member
        offset, form, value = random.choice(
            (
                (8, "<H", 1),
                (8, "<H", 0x41),
                (10, "<H", 99),
                (10, "<H", 8),
                (20, "<I", 2**32 - 1),
                (24, "<I", 2**32 - 1),
                (24, "<I", 0),
                (42, "<I", 0),
                (42, "<I", 2**31),
                (28, "<H", 65535),
            )
        )
        struct.pack_into(form, content, place + offset, value)
        local = content.rfind(b"PK\x03\x04", 0, place)
        if offset in (8, 10) and local >= 0:
            struct.pack_into(form, content, local + offset - 2, value)
    return bytes(content)


def _single(random: Random) -> bytes:
    """One file, compressed once or several times, or several files in a row."""
    content = _content(random)
    for _ in range(random.randint(1, 3)):
        content = random.choice(_PACKERS)(content)
    return content * random.choice((1, 1, 1, 2, 5))


def _broken(random: Random, content: bytes) -> bytes:
    """Truncated, with changed bytes, or with bytes before or after."""
    changed = bytearray(content)
    for _ in range(random.randint(0, 4)):
        if changed:
            changed[random.choice((random.randrange(len(changed)), random.randrange(min(len(changed), 600))))] = (
                random.randrange(256)
            )
    if random.random() < 0.5:
        del changed[random.randint(0, len(changed)) :]
    return bytes(changed) + (random.randbytes(random.randint(0, 50)) if random.random() < 0.2 else b"")


_MAKERS: tuple[Callable[[Random], bytes], ...] = (_tar, _sizes, _many, _zip, _single)
_WEIGHTS = (40, 15, 3, 35, 10)
