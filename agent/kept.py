"""What a service keeps over a restart: findings and how long they stand, what probes measured, earlier observations."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Literal

import msgspec

from ..models.said import Observation
from ..models.said_lines import decode, encode
from ..models.standing import Key, Sighting
from .pipeline import Memory
from .whole_file import write_whole

_FILE = "service.json"
_BIGGEST = 64 << 20  # bytes
_CLOCKS = 3600.0  # seconds by which a clock may have been put back since
_log = logging.getLogger("linkgauge")


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    at: float  # seconds since 1970
    standing: tuple[tuple[Key, Sighting], ...] = ()
    measured: tuple[str, ...] = ()  # lines of said_lines.py
    past: tuple[Observation, ...] = ()


def save(folder: str, memory: Memory, now: float) -> None:
    """Keep it in the folder. A full disk, a folder that nobody may write to: a warning, and the service goes on."""
    kept = _Kept(
        at=now, standing=tuple(memory.standing.items()), measured=tuple(map(encode, memory.measured)), past=memory.past
    )  # fmt: skip
    try:
        os.makedirs(folder, exist_ok=True)
        write_whole(os.path.join(folder, _FILE), msgspec.json.encode(kept))
    except OSError as refused:
        _log.warning("%s: %s: a restart will forget what is known", folder, refused.strerror)


def load(folder: str, memory: Memory, now: float) -> Memory:
    """The memory with what was kept; without, where that is nothing or cannot be used, which is a warning."""
    path = os.path.join(folder, _FILE)
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            kept = _parsed(file.read(_BIGGEST + 1), now)
        measured = tuple(map(decode, kept.measured))
    except FileNotFoundError:
        return memory
    except (OSError, ValueError) as wrong:
        _log.warning("%s: %s: begun anew", path, getattr(wrong, "strerror", None) or wrong)
        return memory
    return replace(memory, standing=dict(kept.standing), measured=measured, past=kept.past)


def _parsed(content: bytes, now: float) -> _Kept:
    """ValueError, with a reason."""
    if len(content) > _BIGGEST:
        raise ValueError(f"larger than {_BIGGEST >> 20} MB")
    try:
        kept = msgspec.json.decode(content, type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"damaged ({wrong})") from None
    if kept.at > now + _CLOCKS:
        raise ValueError("written later than it is now")
    return kept


def _without_waiting(path: str, flags: int) -> int:
    """A pipe of that name would wait for somebody who writes."""
    return os.open(path, flags | os.O_NONBLOCK)
