"""Blocks of a disk that contain data: blocks of its files, else of the disk itself.

Only these blocks show how fast a disk reads. For a trimmed or unwritten block the disk returns zeros at the speed of
its link, without reading its memory.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec import Struct

from ....models.facts.reason import Reason
from ....models.facts.units import MIB
from ...storage.block_mounts import MountedFolder
from .extents import extents

BLOCK = 1 * MIB  # bytes of one read: above the 128 KiB of disk specifications, with small page tables
_SMALLEST = 64 * MIB  # bytes of a file: smaller files are numerous and fragmented
_SETTLED = 60.0  # seconds: files changed more recently are in use, and may not be on the disk yet
_PIECES = 64  # regions of a disk without files
_FILES = 256  # open files at once; a process may have 1024
_NO_FIEMAP = (errno.EOPNOTSUPP, errno.ENOTTY)  # errors of file systems without FIEMAP
_CHECKED_BYTES = 4096  # bytes at the start of a block that _is_empty() reads


class NoData(Exception):
    """There is no data to read. The message is the reason."""

    def __init__(self, why: str, reason: Reason = Reason.NOT_MEASURED) -> None:
        super().__init__(why)
        self.reason = reason


class Block(Struct, frozen=True):
    """BLOCK bytes to read, at an offset in an open file."""

    file: int
    offset: int


def open_direct(path: str, is_expected: Callable[[int], bool] = stat.S_ISREG) -> int:
    """Open a file for direct reads, without an update of its access time if permitted.

    `is_it` checks the file's mode before it is opened, because the owner of a folder can replace a file, and opening a
    device can have side effects (a watchdog). Raises OSError; EINVAL if the file system has no direct reads (tmpfs).
    """
    flags = os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC | os.O_NONBLOCK
    path_handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)  # O_PATH does not open the file itself
    try:
        if not is_expected(os.fstat(path_handle).st_mode):
            raise OSError(errno.ENOENT, "it was replaced")
        with suppress(PermissionError):  # O_NOATIME is only allowed for the owner and for root
            return os.open(f"/proc/self/fd/{path_handle}", flags | os.O_NOATIME)
        return os.open(f"/proc/self/fd/{path_handle}", flags)
    finally:
        os.close(path_handle)


def of_files(folders: Sequence[MountedFolder], most: int, until: float) -> list[Block]:
    """Return blocks of the large files found until the monotonic time `until`, at most `most` bytes. Raises NoData."""
    blocks: list[Block] = []
    reasons: dict[str, None] = {}
    seen = set[tuple[int, int]]()  # a file system may have several mounts
    for folder in folders:
        if folder.device is None and not folder.remote:
            reasons[f"{folder.fstype} on {folder.point} is on no disk visible here"] = None
            continue
        for path in _large_files(folder.point, until, seen):
            try:
                blocks += _of_file(path, folder.remote, most // BLOCK - len(blocks))
            except OSError as error:
                reasons[_refusal(folder, error)] = None
            if len(blocks) * BLOCK >= most or len({block.file for block in blocks}) >= _FILES:
                return blocks
    if len(blocks) * BLOCK < _SMALLEST:
        where = ", ".join(folder.point for folder in folders[:3]) or "it"
        nothing = f"no file of {_SMALLEST // MIB} MiB and more that holds data was found on {where}"
        raise NoData("; ".join(reasons) or nothing)
    return blocks


def of_device(path: str, most: int) -> list[Block]:
    """Return non-empty blocks from all regions of a disk, at most `most` bytes. Raises NoData, OSError."""
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
    """Yield large files below a folder, breadth first, on the same file system, without those in `seen`."""
    folders = deque([point])
    try:
        device = os.stat(point).st_dev
    except OSError:
        return
    while folders and time.monotonic() < until:
        with suppress(OSError), os.scandir(folders.popleft()) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    number = status.st_dev, status.st_ino
                    if status.st_dev != device or number in seen:
                        continue
                    seen.add(number)
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
                    elif _is_large(status):
                        yield entry.path


def _is_large(status: os.stat_result) -> bool:
    """Whether a file is large, also without its holes, and was not changed recently."""
    settled = time.time() - status.st_mtime > _SETTLED
    return stat.S_ISREG(status.st_mode) and min(status.st_size, 512 * status.st_blocks) >= _SMALLEST and settled


def _of_file(path: str, remote: bool, most: int) -> list[Block]:
    """Return the blocks of a file that contain data. For network file systems without FIEMAP, return all its blocks."""
    file = open_direct(path)
    end = os.fstat(file).st_size  # only whole blocks are used
    try:
        spans = [(one.offset, min(end, one.offset + one.length)) for one in extents(file)]
    except OSError as error:
        if not (remote and error.errno in _NO_FIEMAP):
            os.close(file)
            raise
        spans = [(0, end)]
    offsets = [offset for first, last in spans for offset in range(first, last - BLOCK + 1, BLOCK)]
    if not offsets or most <= 0:
        os.close(file)
    return [Block(file, offset) for offset in offsets[: max(0, most)]]


def _is_empty(file: int, offset: int) -> bool:
    """Whether the block begins with zeros."""
    import mmap

    with mmap.mmap(-1, _CHECKED_BYTES) as memory:  # direct reads need page alignment
        return os.preadv(file, [memory], offset) < _CHECKED_BYTES or not any(memory[:])


def _refusal(folder: MountedFolder, error: OSError) -> str:
    if error.errno == errno.EINVAL:
        return f"{folder.fstype} on {folder.point} has no direct reads"
    if error.errno in _NO_FIEMAP:
        return f"{folder.fstype} on {folder.point} does not tell where its files lie"
    return f"{folder.point}: {error.strerror}"


@contextmanager
def closing(blocks: Collection[Block]) -> Iterator[None]:
    """Close the files of the blocks at the end."""
    try:
        yield
    finally:
        for file in {block.file for block in blocks}:
            os.close(file)
