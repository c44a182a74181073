"""What a service keeps over a restart: findings and how long they stand, what probes measured, earlier observations."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal

import msgspec

from ...models.catalog import codes
from ...models.diagnosis.hysteresis import History, Key
from ...models.facts.jsonl import decode, encode
from ...models.facts.records import Observation
from ...probes.calls.bounded_read import bounded_read
from ..inputs.resolve import BadInput
from ..pipeline.diagnose import Memory
from ..state.atomic_write import write_whole
from ..state.state_file import CLOCK_STEP

_FILE = "service.json"
_MOST = 64 << 20  # bytes
_log = logging.getLogger("linkgauge")


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    version: Literal[1] = 1
    at: float  # seconds since 1970
    standing: tuple[tuple[Key, History], ...] = ()
    measured: tuple[str, ...] = ()  # lines of said_lines.py
    past: tuple[Observation, ...] = ()


@contextmanager
def alone(folder: str) -> Iterator[None]:
    """Nobody else keeps his state there meanwhile: two would undo each other's. Raises BadInput where somebody does."""
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # who cannot keep anything there is told so when it is tried
        yield
        return
    try:
        _lock(descriptor, folder)
        _sweep(folder)
        yield
    finally:
        os.close(descriptor)  # which lets go of the lock; so does the end of the process, whatever ends it


def _lock(descriptor: int, folder: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        why = "another 'linkgauge serve' keeps its state there: end it, or give this one another folder"
        raise BadInput(f"--state-dir {folder}: {why}") from None
    except OSError:
        pass  # a file system that knows no locks


def _sweep(folder: str) -> None:
    """Take away what was being written when a service was killed."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(f".{_FILE}."):
                os.unlink(os.path.join(folder, name))


def save(folder: str, memory: Memory, now: float) -> str | None:
    """Keep it in the folder. Why that was not possible (a full disk, a folder that nobody may write to), in words."""
    kept = _Kept(
        at=now, standing=tuple(memory.standing.items()), measured=tuple(map(encode, memory.measured)), past=memory.past
    )
    try:
        os.makedirs(folder, exist_ok=True)
        write_whole(os.path.join(folder, _FILE), msgspec.json.encode(kept))
    except OSError as refused:
        return f"{folder}: {refused.strerror}"
    return None


def load(folder: str, memory: Memory, now: float) -> Memory:
    """The memory with what was kept; without, where that is nothing or cannot be used, which is a warning.

    A finding whose code is no longer known, of an earlier version of the program, is forgotten.
    """
    path = os.path.join(folder, _FILE)
    try:
        kept = _parsed(bounded_read(path, _MOST), now)
        measured = tuple(map(decode, kept.measured))
    except FileNotFoundError:
        return memory
    except (OSError, ValueError) as wrong:
        _log.warning("%s: %s: begun anew", path, getattr(wrong, "strerror", None) or wrong)
        return memory
    known = {key: history for key, history in kept.standing if key[0] in codes() and history.findings}
    return replace(memory, standing=known, measured=measured, past=kept.past)


def _parsed(content: bytes, now: float) -> _Kept:
    """ValueError, with a reason."""
    try:
        kept = msgspec.json.decode(content, type=_Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(f"damaged ({wrong})") from None
    if kept.at > now + CLOCK_STEP:
        raise ValueError("written later than it is now")
    return kept
