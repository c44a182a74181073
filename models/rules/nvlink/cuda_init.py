"""CUDA errors at start that show a fault of the machine."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Gpu
from ...facts.machine import NcclFailure, Service
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..core.wording import cited
from .fabric_manager import MANAGER, explained

_UNREADY = "system not yet initialized"  # cudaErrorSystemNotReady, 802


def unready(failure: NcclFailure) -> bool:
    """Whether CUDA failed because the NVLink fabric is not ready."""
    return failure.key == "CUDA" and _UNREADY in (failure.error or "")


def fabric_not_ready(snapshot: Snapshot, failure: NcclFailure) -> bool:
    """Select this error if the GPUs may be on a board with NVSwitches, or are not known."""
    products = [gpu_product(snapshot, gpu) for gpu in snapshot.of(Gpu).values()]
    on_boards = any(it is None or (it.link_kind == "nvlink" and it.links and not it.bridged) for it in products)
    return unready(failure) and (on_boards or not products)


def system(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """Error 802: the GPUs of a machine with NVSwitches have not joined their fabric."""
    if explained(snapshot):
        return  # fabric_manager.py reports the cause
    service = snapshot.of(Service).get(MANAGER)
    runs = service is not None and service.running is True
    yield Finding(
        code="fabric-manager-down",
        severity="critical",
        confidence="possible" if runs else "likely",
        subject=MANAGER,
        message=f"CUDA does not start (error 802, {_UNREADY}): the fabric manager has not set up the NVLink fabric",
        expected="running",
        observed="running" if runs else None,
        expected_source="CUDA Runtime API, cudaErrorSystemNotReady",
        cause="the fabric manager is not installed, does not run, or does not fit the driver; or GPUs were reset after "
        "it was started",
        evidence=(*cited(failure, "text"), *(cited(service, "running") if service else ())),
    )


RULES = (Rule("fabric-manager-down", NcclFailure, ("text",), system, fabric_not_ready),)
