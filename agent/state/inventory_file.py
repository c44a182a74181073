"""The inventory file of the service: what was there before, and what is there in this boot."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Literal

import msgspec

from ...models.inventory.inventory import Inventory, advanced
from .acceptance import Acceptance, folder_of
from .state_file import read_state_file, write_state_file

FILE = "inventory.json"


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The inventory to compare with, and the latest inventory of the same boot."""

    version: Literal[1] = 1
    reference: Inventory
    last: Inventory


def write(folder: str, reference: Inventory, last: Inventory) -> None:
    """Replace the inventory file atomically. Raises OSError."""
    write_state_file(folder, FILE, msgspec.json.encode(Stored(reference=reference, last=last)))


def of(root: str, source: Sequence[str], state_dir: str | None, accepted: Acceptance) -> Inventory | None:
    """What was there before: at the last acceptance, or as the service recorded it. A recording has none unless the
    folder is given.
    """
    if source and state_dir is None:
        return None
    stored = _read(folder_of(root, state_dir))
    return newest(stored.reference if stored else None, accepted)


def load(folder: str, accepted: Acceptance, boot_id: str | None) -> tuple[Inventory | None, Inventory | None]:
    """What was there before and what is there in this boot, for a service that starts.

    After a boot, the inventory of the boot before is the reference. What was absent then stays expected.
    """
    stored = _read(folder)
    if stored is None:
        return accepted.inventory, None
    if boot_id is None or stored.last.boot_id == boot_id:
        return newest(stored.reference, accepted), stored.last
    return newest(advanced(stored.reference, stored.last), accepted), None


def newest(reference: Inventory | None, accepted: Acceptance) -> Inventory | None:
    """The inventory of the acceptance, unless the other one is newer."""
    newer = reference is None or (accepted.inventory and accepted.inventory.taken_at > reference.taken_at)
    return accepted.inventory if newer else reference


def _read(folder: str) -> Stored | None:
    """None if there is no file, or if it cannot be used (with a warning on standard error)."""
    path = os.path.join(folder, FILE)
    try:
        return read_state_file(path, Stored)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as refused:
        why = getattr(refused, "strerror", None) or str(refused)
        if isinstance(refused, PermissionError):
            why += " (only for root and the group linkgauge)"
        from ...exporters.text.terminal import safe  # imported only on an error

        print(safe(f"Warning: {path}: {why}; the inventory of this node is not used"), file=sys.stderr)
        return None
