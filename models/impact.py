"""What a finding costs a job."""

from __future__ import annotations

from dataclasses import replace

from .case import Case
from .gpu_facts import Gpu, GpuLink
from .report import Finding
from .routes import limited, rated
from .said import Flow
from .shares import shares


def weigh(case: Case, finding: Finding) -> Finding:
    """The finding with the slowdown of an all_reduce over the node's GPUs, if only this finding's limits held.

    A ring in the order of the names; its slowest step sets its speed (bandwidth term of the ring algorithm, nccl-tests
    doc/PERFORMANCE.md). A GPU that has no NVLink left goes over PCIe, as with NCCL. Nothing is said without limits,
    with fewer than two GPUs, or where nobody asked the GPUs for their links: what goes over those costs nothing here.
    """
    gpus = sorted(device.id for device in case.topology.devices if device.kind == "gpu")
    joined = {link.gpu for link in case.of(GpuLink).values()}
    asked = [gpu.nvlinks is not None or gpu.key in joined for gpu in case.of(Gpu).values()]
    if not finding.limits or len(gpus) < 2 or len(asked) < len(gpus) or not all(asked):
        return finding
    ring = [Flow("copy", ends) for ends in zip(gpus, gpus[1:] + gpus[:1], strict=True)]
    whole = shares(case.topology, ring, rated)
    left = shares(case.topology, ring, limited(finding.limits))
    if len(whole) < len(ring) or len(left) < len(ring):
        return finding
    return replace(finding, impact={**finding.impact, "all_reduce": round(min(whole.values()) / min(left.values()), 3)})
