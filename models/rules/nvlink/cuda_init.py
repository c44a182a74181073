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

_MISMATCHES = (  # cudaErrorSystemDriverMismatch (803), cudaErrorInsufficientDriver (35)
    "unsupporteddisplaydriver/cudadrivercombination",
    "driverversionisinsufficientforcudaruntimeversion",
)
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


def mismatched(snapshot: Snapshot, failure: NcclFailure) -> bool:
    """Select errors of CUDA that name the versions of driver and library (error 803, error 35)."""
    error = "".join((failure.error or "").lower().split())  # a table breaks texts within words
    return failure.key == "CUDA" and any(text in error for text in _MISMATCHES)


def versions(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """Driver and CUDA library do not belong together."""
    yield Finding(
        code="driver-mismatch",
        severity="critical",
        subject="node",
        message=f"CUDA does not start: {failure.error}",
        expected_source="CUDA Runtime API, cudaErrorSystemDriverMismatch, cudaErrorInsufficientDriver",
        cause="the CUDA library is newer than the driver, or a compatibility library does not fit the GPU",
        evidence=cited(failure, "text"),
    )


RULES = (
    Rule("fabric-manager-down", NcclFailure, ("text",), system, fabric_not_ready),
    Rule("driver-mismatch", NcclFailure, ("text",), versions, mismatched),
)
