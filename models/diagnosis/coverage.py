"""Hardware that no source covers. It is listed in every report, so that "ok" does not include unchecked parts."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.gpu import Driver, Gpu
from ..facts.pci_classes import NVIDIA
from ..facts.reason import Reason
from ..facts.records import NotChecked
from ..inventory.snapshot import Snapshot
from ..rules.gpu.missing import whole


def uncovered(snapshot: Snapshot) -> Iterator[NotChecked]:
    """GPU drivers that no source reads, and device counts without an expected value. Dumps are not checked for this."""
    gpus = snapshot.functions("gpu")
    if snapshot.origin == "dumps" or not gpus:
        return
    bound = [gpu for gpu in gpus if gpu.vendor == NVIDIA and gpu.driver == "nvidia"]
    refused = any(lost.what in ("Gpu", "Driver") for lost in snapshot.not_checked)
    if bound and not (snapshot.of(Gpu) or "nvidia" in snapshot.of(Driver) or refused):
        why = "no source reads the GPUs' driver: NVLink, memory errors, clocks and processes were not checked"
        yield NotChecked(
            what="Gpu", subject="node", reason=Reason.DRIVER, detail=why, how="nvidia-smi -q; nvidia-smi nvlink -s"
        )
    unread = any(lost.what in ("Node.product", "Node.vendor") for lost in snapshot.not_checked)
    if len(gpus) > 1 and whole(snapshot) is None and not unread:
        why = f"{len(gpus)} were seen, and no machine type says how many there should be"
        yield NotChecked(
            what="number of GPUs",
            subject="node",
            reason=Reason.NO_EXPECTATION,
            detail=why,
            how="describe the machine in the site file",
        )
