"""What a finding costs a job."""

from __future__ import annotations

from dataclasses import replace

from .case import Case
from .report import Finding
from .routes import limited, rated
from .said import Flow
from .shares import shares


def weigh(case: Case, finding: Finding) -> Finding:
    """The finding with the slowdown of an all_reduce over the node's GPUs, if only this finding's limits held.

    A ring in the order of the names; its slowest step sets its speed (bandwidth term of the ring algorithm, nccl-tests
    doc/PERFORMANCE.md). Without limits, or with fewer than two GPUs, nothing is said.
    """
    gpus = sorted(device.id for device in case.topology.devices if device.kind == "gpu")
    if not finding.limits or len(gpus) < 2:
        return finding
    ring = [Flow("copy", ends) for ends in zip(gpus, gpus[1:] + gpus[:1], strict=True)]
    whole = shares(case.topology, ring, rated)
    left = shares(case.topology, ring, limited(finding.limits))
    if len(whole) < len(ring) or len(left) < len(ring):
        return finding
    return replace(finding, impact={**finding.impact, "all_reduce": round(min(whole.values()) / min(left.values()), 3)})
