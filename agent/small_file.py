"""Small files of the state folder: read as a whole or not at all, without waiting, without trust in what is there."""

from __future__ import annotations

import os
import stat
from typing import TypeVar

import msgspec

T = TypeVar("T")
_BIGGEST = 4 << 20  # bytes


def read_small(path: str, kind: type[T]) -> T:
    """What the file holds. OSError, or ValueError with a sentence, where that cannot be had."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path}: not a plain file")
        content = file.read(_BIGGEST + 1)
    if len(content) > _BIGGEST:
        raise ValueError(f"{path}: larger than {_BIGGEST >> 20} MB")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"{path}: damaged, or of another version ({wrong})") from None


def _without_waiting(path: str, flags: int) -> int:
    """A pipe of that name would wait for somebody who writes."""
    return os.open(path, flags | os.O_NONBLOCK)
