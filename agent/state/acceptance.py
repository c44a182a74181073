"""What is kept of a node between runs: when it was accepted, and what was observed then. One file in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from ...models.facts.records import Observation
from ...models.facts.units import as_utc
from ...probes.calls.bounded_read import bounded_read
from .atomic_write import write_whole
from .state_file import CLOCK_STEP

FOLDER = "var/lib/linkgauge"  # below the root of the machine
_FILE = "accepted.json"
_VERSION = 1
_LATEST = 1e11  # seconds since 1970
_MOST = 64 << 20  # bytes: a large node has some thousand counts of 200 bytes


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """The word of somebody who repaired the node or took it over: from then on it is good."""

    version: Literal[1] = 1
    at: float | None = None  # seconds since 1970; None: nobody said so
    baseline: tuple[Observation, ...] = ()  # rates, and counts as they stood


def of(root: str, source: Sequence[str], given: str | None, now: float) -> Acceptance:
    """What is kept of this machine, or of the one at `root`; of recordings nothing, unless the folder was named.

    One of later than `now`, which is when the machine is looked at, is not used.
    """
    nobody = Acceptance()
    if source and given is None:
        return nobody
    folder = folder_of(root, given)
    kept = read(folder) or nobody
    if kept.at is not None and kept.at > now + CLOCK_STEP:
        _warn(os.path.join(folder, _FILE), f"it was accepted {as_utc(kept.at)}, later than what is looked at")
        return nobody
    return kept


def written(folder: str) -> int | None:
    """When somebody accepted the node, as the folder's file tells: another number, another acceptance."""
    try:
        return os.stat(os.path.join(folder, _FILE)).st_mtime_ns
    except OSError:
        return None


def folder_of(root: str, given: str | None) -> str:
    """The folder that was named, or the one of the machine whose root is there."""
    return os.path.join(root, FOLDER) if given is None else given


def read(folder: str) -> Acceptance | None:
    """What is kept there. None where there is nothing; what cannot be used is told on standard error."""
    path = os.path.join(folder, _FILE)
    try:
        return _parsed(bounded_read(path, _MOST))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as refused:  # ValueError: a name with a zero byte, too
        _warn(path, getattr(refused, "strerror", None) or str(refused))
        return None


def _parsed(content: bytes) -> Acceptance:
    """ValueError, with a sentence, where it is none of this version."""
    try:
        kept = msgspec.json.decode(content, type=Acceptance)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(_why(content, wrong)) from None
    if not all(0 <= at < _LATEST for at in (kept.at or 0.0, *(one.at for one in kept.baseline))):
        raise ValueError("damaged (a time that cannot be)")
    return kept


def write(folder: str, acceptance: Acceptance) -> None:
    """Keep it there: who reads meanwhile, or after a loss of power, sees the old one or the new. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    write_whole(os.path.join(folder, _FILE), msgspec.json.encode(acceptance))  # `diagnose` needs no root to read it


def _why(content: bytes, wrong: Exception) -> str:
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        kept = msgspec.json.decode(content)
        version = kept.get("version") if isinstance(kept, dict) else None
        if isinstance(version, int) and version != _VERSION:
            return f"of version {version}, and only version {_VERSION} is known here"
    return f"damaged ({wrong})"


def _warn(path: str, why: str) -> None:
    print(f"Warning: {path}: {why}; that this node was accepted is not used", file=sys.stderr)
