"""The machine type, as far as its counts hold for this machine."""

from __future__ import annotations

from dataclasses import dataclass

from ...inventory.snapshot import Snapshot
from ...report import Basis
from ...site.schema import Machine


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine type and who says what it has."""

    machine: Machine
    basis: Basis
    source: str


def profile(snapshot: Snapshot) -> Profile | None:
    """The operator's machine type, or the catalog's if more than the name of its GPUs was known by it."""
    machine = snapshot.machine
    if machine is None:
        return None
    if machine in snapshot.site.machine:
        return Profile(machine, "site", machine.source)
    return Profile(machine, "profile", machine.source) if machine.sure else None
