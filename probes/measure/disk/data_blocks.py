"""Blocks of a disk that are known to hold data: those of files that lie on it, else of the disk itself.

Only they tell how fast a disk reads: one that was trimmed or never written answers with zeros, at the speed of its link
and without looking at its memory.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from ....models.facts.reason import Reason
from ....models.facts.units import MIB
from ...storage.block_mounts import Place
from .extents import extents

BLOCK = 1 * MIB  # of one read: what disks are specified with (128 KiB) and more, and the page tables of few pages
_SMALLEST = 64 * MIB  # of a file: smaller ones are many, and lie in pieces
_SETTLED = 60.0  # seconds: what was changed since then is somebody's work, and may not be on the disk yet
_PIECES = 64  # places of a disk without files, each as long as is needed for the whole
_FILES = 256  # that are open at once, of the 1024 that a process may have
_WITHOUT = (errno.EOPNOTSUPP, errno.ENOTTY)  # how file systems say that they have no FIEMAP
_LOOKED_AT = 4096  # bytes of a block


class NoData(Exception):
    """Nothing to read; its text says why, in words."""

    def __init__(self, why: str, reason: Reason = Reason.NOT_MEASURED) -> None:
        super().__init__(why)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Block:
    """Where to read BLOCK bytes: an open file, and the offset in it."""

    file: int
    offset: int


def open_direct(path: str, is_it: Callable[[int], bool] = stat.S_ISREG) -> int:
    """The file, to be read past the page cache; and where that is allowed, without a note that it was read (a write).

    `is_it` tells of a mode whether that is what is read: whoever owns a folder may put something else in the place of
    what was seen there, and to open a device alone can start something (a watchdog). Raises OSError: EINVAL where the
    file system has no direct reads (tmpfs).
    """
    flags = os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC | os.O_NONBLOCK
    held = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)  # opens nothing yet
    try:
        if not is_it(os.fstat(held).st_mode):
            raise OSError(errno.ENOENT, "it became something else")
        with suppress(PermissionError):  # allowed to its owner and to root
            return os.open(f"/proc/self/fd/{held}", flags | os.O_NOATIME)
        return os.open(f"/proc/self/fd/{held}", flags)
    finally:
        os.close(held)


def of_files(places: Sequence[Place], most: int, until: float) -> list[Block]:
    """Blocks of the largest files that are found until that time (monotonic), `most` bytes of them. Raises NoData."""
    blocks: list[Block] = []
    whys: dict[str, None] = {}
    seen = set[tuple[int, int]]()  # one file system may be mounted several times
    for place in places:
        if place.device is None and not place.remote:
            whys[f"{place.fstype} on {place.point} lies on no disk that is seen here"] = None
            continue
        for path in _large_files(place.point, until, seen):
            try:
                blocks += _of_file(path, place.remote, most // BLOCK - len(blocks))
            except OSError as error:
                whys[_refusal(place, error)] = None
            if len(blocks) * BLOCK >= most or len({block.file for block in blocks}) >= _FILES:
                return blocks
    if len(blocks) * BLOCK < _SMALLEST:
        where = ", ".join(place.point for place in places[:3]) or "it"
        nothing = f"no file of {_SMALLEST // MIB} MiB and more that holds data was found on {where}"
        raise NoData("; ".join(whys) or nothing)
    return blocks


def of_device(path: str, most: int) -> list[Block]:
    """Blocks of a disk that hold something, from places all over it. Raises NoData, and OSError where it is refused."""
    file = open_direct(path, stat.S_ISBLK)
    size = os.lseek(file, 0, os.SEEK_END)
    each = max(1, most // BLOCK // _PIECES)
    starts = (piece * size // _PIECES // BLOCK * BLOCK for piece in range(_PIECES))
    blocks = [
        Block(file, start + number * BLOCK)
        for start in starts
        for number in range(each)
        if start + (number + 1) * BLOCK <= size and not _is_empty(file, start + number * BLOCK)
    ]
    if len(blocks) * BLOCK < _SMALLEST:
        os.close(file)
        raise NoData(f"{path} holds hardly anything but zeros: it was trimmed, or never written")
    return blocks


def _large_files(point: str, until: float, seen: set[tuple[int, int]]) -> Iterator[str]:
    """Files below a folder, on its file system alone, level by level; none that was seen before."""
    folders = deque([point])
    try:
        device = os.stat(point).st_dev
    except OSError:
        return
    while folders and time.monotonic() < until:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                with suppress(OSError):
                    told = entry.stat(follow_symlinks=False)
                    number = told.st_dev, told.st_ino
                    if told.st_dev != device or number in seen:
                        continue
                    seen.add(number)
                    if stat.S_ISDIR(told.st_mode):
                        folders.append(entry.path)
                    elif _is_large(told):
                        yield entry.path


def _is_large(told: os.stat_result) -> bool:
    """Also on the disk, of which it may have holes, and not just being written."""
    settled = time.time() - told.st_mtime > _SETTLED
    return stat.S_ISREG(told.st_mode) and min(told.st_size, 512 * told.st_blocks) >= _SMALLEST and settled


def _of_file(path: str, far: bool, most: int) -> list[Block]:
    """Blocks of a file. Servers do not tell where it holds data; there all counts that is not zero."""
    file = open_direct(path)
    end = os.fstat(file).st_size  # whole blocks: the end of a file is none
    try:
        spans = [(one.offset, min(end, one.offset + one.length)) for one in extents(file)]
    except OSError as error:
        if not (far and error.errno in _WITHOUT):
            os.close(file)
            raise
        spans = [(0, end)]
    offsets = [offset for first, last in spans for offset in range(first, last - BLOCK + 1, BLOCK)]
    if not offsets or most <= 0:
        os.close(file)
    return [Block(file, offset) for offset in offsets[: max(0, most)]]


def _is_empty(file: int, offset: int) -> bool:
    """Whether the beginning of a block is zeros."""
    import mmap

    with mmap.mmap(-1, _LOOKED_AT) as memory:  # begins at a page, as direct reads must
        return os.preadv(file, [memory], offset) < _LOOKED_AT or not any(memory[:])


def _refusal(place: Place, error: OSError) -> str:
    if error.errno == errno.EINVAL:
        return f"{place.fstype} on {place.point} has no direct reads"
    if error.errno in _WITHOUT:
        return f"{place.fstype} on {place.point} does not tell where its files lie"
    return f"{place.point}: {error.strerror}"


@contextmanager
def closing(blocks: Collection[Block]) -> Iterator[None]:
    """Close the files of the blocks in the end."""
    try:
        yield
    finally:
        for file in {block.file for block in blocks}:
            os.close(file)
