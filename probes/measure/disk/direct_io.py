"""Reads and writes past the page cache, several at once, in threads: preadv and pwrite release the interpreter lock.

Eight of them are as fast as fio with libaio at depth 8, within 2 % (bench/accuracy/tool_agreement.py measures it).
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .data_blocks import BLOCK, Block

_GLANCE = 0.05  # seconds between two looks at what the run does to the machine
_LOOKED_AT = range(0, BLOCK, BLOCK // 16)  # bytes of a block that was read: data is not zero at all of them


@dataclass(slots=True)
class Moved:
    """What a run moved."""

    bytes: int = 0
    seconds: float = 0.0
    blocks: int = 0
    zeros: int = 0  # blocks of nothing but zeros, as far as was looked
    failed: OSError | None = None  # what ended it: a disk that is gone, a file that became shorter
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def hollow(self) -> float:
        """The share of blocks that hold nothing."""
        return self.zeros / self.blocks if self.blocks else 0.0

    def count(self, bytes: int, zeros: bool) -> None:
        """One more block."""
        with self._lock:
            self.bytes += bytes
            self.blocks += 1
            self.zeros += zeros


def read(blocks: Sequence[Block], depth: int, seconds: float, watch: Callable[[], None] = lambda: None) -> Moved:
    """Each block once, `depth` at a time, for `seconds` at most; `watch` is called meanwhile."""
    waiting = iter(blocks)

    def next_one(memory: mmap.mmap, moved: Moved) -> bool:
        block = next(waiting, None)
        if block is None:
            return False
        if os.preadv(block.file, [memory], block.offset) < BLOCK:
            raise OSError(0, "it ended early: the file or the disk is shorter than it was")
        moved.count(BLOCK, not any(memory[place] for place in _LOOKED_AT) and not any(memory[:4096]))
        return True

    return _run(next_one, depth, seconds, watch)


def write(file: int, most: int, depth: int, seconds: float, watch: Callable[[], None] = lambda: None) -> Moved:
    """Blocks one after another into a file, until `most` bytes or `seconds` are over; and onto the disk."""
    waiting = iter(range(0, most, BLOCK))

    def next_one(memory: mmap.mmap, moved: Moved) -> bool:
        offset = next(waiting, None)
        if offset is None:
            return False
        if not any(memory[8:16]):  # its first: what compresses, some disks do not store
            memory[:] = os.urandom(BLOCK)
        memory[:8] = offset.to_bytes(8, "little")
        if os.pwrite(file, memory, offset) < BLOCK:
            raise OSError(0, "it took less than was given to it")
        moved.count(BLOCK, zeros=False)
        return True

    return _run(next_one, depth, seconds, watch, lambda: os.fdatasync(file))


def _run(
    next_one: Callable[[mmap.mmap, Moved], bool],
    depth: int,
    seconds: float,
    watch: Callable[[], None],
    at_end: Callable[[], None] = lambda: None,
) -> Moved:
    """Threads that each do one block after another."""
    moved = Moved()
    start = time.monotonic()
    until = start + seconds

    def work() -> None:
        try:
            with mmap.mmap(-1, BLOCK) as memory:  # begins at a page, as direct reads must
                while time.monotonic() < until and not moved.failed and next_one(memory, moved):
                    pass
        except OSError as error:
            moved.failed = error

    workers = [threading.Thread(target=work, daemon=True) for _ in range(depth)]
    for worker in workers:
        worker.start()
    for _ in _while_alive(workers):
        watch()
    try:
        at_end()
    except OSError as error:
        moved.failed = moved.failed or error
    moved.seconds = time.monotonic() - start
    return moved


def _while_alive(workers: Sequence[threading.Thread]) -> Iterator[None]:
    for worker in workers:
        while worker.is_alive():
            worker.join(_GLANCE)
            yield
