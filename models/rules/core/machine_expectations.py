"""The machine type of this node, if its counts of devices apply to the node."""

from __future__ import annotations

from msgspec import Struct

from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Basis
from ...site.schema import Machine


class Profile(Struct, frozen=True):
    """A machine type and the source of its counts."""

    machine: Machine
    basis: Basis
    source: str


@once_per_snapshot
def profile(snapshot: Snapshot) -> Profile | None:
    """The machine type of the site file, or of the catalog. None: only the name of the GPUs matches the catalog."""
    machine = snapshot.machine
    if machine is None:
        return None
    if machine in snapshot.site.machine:
        return Profile(machine, "site", machine.source)
    return Profile(machine, "profile", machine.source) if machine.sure else None
