"""Outputs of nvidia-smi with fewer GPUs than they count: they were cut, or show one GPU (-i)."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Driver, Gpu
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ..core.rule import Rule


def lacks_gpus(snapshot: Snapshot, driver: Driver) -> bool:
    """Select drivers that count more GPUs than the dumps show."""
    return snapshot.origin == "dumps" and len(snapshot.of(Gpu)) < (driver.gpus or 0)


def absent(snapshot: Snapshot, driver: Driver) -> Iterator[NotChecked]:
    """A gap and no fault: nothing says that these GPUs are missing in the machine."""
    shown = len(snapshot.of(Gpu))
    yield NotChecked(
        what="Gpu",
        subject="node",
        reason=Reason.INCOMPLETE,
        path=driver.cites["gpus"].source if "gpus" in driver.cites else None,
        detail=f"the text shows {shown} of the {driver.gpus} GPUs that the driver counts",
        how="nvidia-smi -q, without -i, to its end",
    )


RULES = (Rule("gpu-missing", Driver, ("gpus",), absent, lacks_gpus),)
