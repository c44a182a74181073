"""The memory of NUMA nodes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from ...facts.machine import Numa
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

# Share of the median of the other nodes. A missing DIMM of eight leaves 0.875, a missing channel of two leaves less.
_UNEVEN = 0.75


def has_cpus(snapshot: Snapshot, node: Numa) -> bool:
    """Select NUMA nodes with CPUs. Nodes with memory only (CXL, GPUs of a Grace machine) and empty nodes are normal."""
    return node.cpus is None or len(node.cpus) > 0


def memory(snapshot: Snapshot, node: Numa) -> Iterator[Finding]:
    """A NUMA node has CPUs and no memory, or far less memory than the other nodes with CPUs."""
    others = [
        other.memory for other in snapshot.of(Numa).values() if other.key != node.key and other.cpus and other.memory
    ]
    usual = statistics.median(others) if others else None
    size = node.memory or 0
    if size and (usual is None or size >= _UNEVEN * usual):
        return
    yield Finding(
        code="numa-memory-missing",
        severity="warning",
        subject=node.key,
        message=f"{node.key} has CPUs and {as_bytes(size) if size else 'no memory'}"
        + (f", the others have {as_bytes(usual)}" if usual else ""),
        expected=usual,
        observed=size,
        unit="bytes",
        basis="kin" if usual else None,
        expected_source=f"median of {len(others)} other NUMA nodes" if usual else None,
        cause="memory modules missing, failed at boot, or in the wrong sockets",
        evidence=cited(node, "memory"),
    )


RULES = (Rule("numa-memory-missing", Numa, ("cpus", "memory"), memory, has_cpus),)
