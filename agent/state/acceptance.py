"""The acceptance file of a node: when the node was accepted, and the observations of that time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec.structs import replace
from msgspec.structs import replace as struct_replace

from ...models.facts.records import Evidence, Observation
from ...models.facts.units import as_utc
from ...models.inventory.inventory import Inventory, Item
from ...probes.calls.bounded_read import bounded_read
from .state_file import ACCEPTED, CLOCK_STEP, write_state_file

FOLDER = "var/lib/linkgauge"  # below the root of the machine
_FILE = "accepted.json"
_VERSION = 1
_LATEST = 1e11  # seconds since 1970
_MOST = 64 << 20  # bytes: a large node has some thousand counts of 200 bytes


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the operator, after a repair or at takeover, that the node is good from this time on."""

    version: Literal[1] = 1
    at: float | None = None  # seconds since 1970; None: not accepted
    baseline: tuple[Observation, ...] = ()  # rates, and counters at that time
    inventory: Inventory | None = None  # the devices at that time


def of(root: str, source: Sequence[str], state_dir: str | None, now: float) -> Acceptance:
    """The acceptance of this machine, or of the one at `root`. A recording has none unless the folder is given.

    An acceptance later than `now`, the time of the snapshot, is not used.
    """
    empty = Acceptance()
    if source and state_dir is None:
        return empty
    folder = folder_of(root, state_dir)
    stored = read(folder) or empty
    if stored.at is not None and stored.at > now + CLOCK_STEP:
        _warn(os.path.join(folder, _FILE), f"it was accepted {as_utc(stored.at)}, later than the time of this snapshot")
        return empty
    return stored


def modified_at(folder: str) -> int | None:
    """The modification time of the acceptance file in nanoseconds. It changes with each acceptance."""
    try:
        return os.stat(os.path.join(folder, _FILE)).st_mtime_ns
    except OSError:
        return None


def folder_of(root: str, state_dir: str | None) -> str:
    """The given folder, else the state folder of the machine at `root`."""
    return os.path.join(root, FOLDER) if state_dir is None else state_dir


def read(folder: str) -> Acceptance | None:
    """Read the acceptance file. None if there is none, or if it cannot be used (with a warning on standard error)."""
    path = os.path.join(folder, _FILE)
    try:
        try:
            return _parsed(bounded_read(path, _MOST, os.O_NOFOLLOW))
        except PermissionError:  # a user of a job
            return _parsed(bounded_read(os.path.join(folder, ACCEPTED), _MOST, os.O_NOFOLLOW))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as refused:  # ValueError: also a name with a zero byte
        _warn(path, getattr(refused, "strerror", None) or str(refused))
        return None


def _parsed(content: bytes) -> Acceptance:
    """Raises ValueError with a message if the content is damaged or of another version."""
    try:
        stored = msgspec.json.decode(content, type=Acceptance)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise ValueError(_why(content, wrong)) from None
    if not all(0 <= at < _LATEST for at in (stored.at or 0.0, *(one.at for one in stored.baseline))):
        raise ValueError("damaged (a time out of range)")
    return stored


def write(folder: str, acceptance: Acceptance) -> None:
    """Replace the acceptance file, and the part of it that all users can read. Raises OSError."""
    write_state_file(folder, ACCEPTED, msgspec.json.encode(_public(acceptance)))
    write_state_file(folder, _FILE, msgspec.json.encode(acceptance))


def _public(acceptance: Acceptance) -> Acceptance:
    """The acceptance without texts that were read, identities and places of devices."""
    baseline = tuple(replace(one, evidence=Evidence("acceptance", "")) for one in acceptance.baseline)
    inventory = acceptance.inventory
    if inventory is not None:
        inventory = struct_replace(
            inventory,
            boot_id=None,
            devices=tuple(map(_anonymous, inventory.devices)),
            absent=tuple(map(_anonymous, inventory.absent)),
        )
    return Acceptance(at=acceptance.at, baseline=baseline, inventory=inventory)


def _anonymous(item: Item) -> Item:
    return struct_replace(item, identity=None, serial=None, slot=None, label=None)


def _why(content: bytes, wrong: Exception) -> str:
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        stored = msgspec.json.decode(content)
        version = stored.get("version") if isinstance(stored, dict) else None
        if isinstance(version, int) and version != _VERSION:
            return f"it has version {version}, and this program reads version {_VERSION}"
    return f"damaged ({wrong})"


def _warn(path: str, why: str) -> None:
    from ...exporters.text.terminal import safe  # imported only on an error

    print(safe(f"Warning: {path}: {why}; the acceptance of this node is not used"), file=sys.stderr)
