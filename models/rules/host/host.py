"""Processors and memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from ...facts.machine import Numa
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_UNEVEN = 0.75  # of the median of the others: a missing DIMM of eight is 0.875, a missing channel of two is less


def has_cpus(snapshot: Snapshot, node: Numa) -> bool:
    """NUMA nodes of memory alone (CXL, the GPUs of a Grace machine) and spare numbers are as they should be."""
    return node.cpus is None or len(node.cpus) > 0


def memory(snapshot: Snapshot, node: Numa) -> Iterator[Finding]:
    """A NUMA node that has CPUs and no memory, or far less than its kin."""
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
