"""Faulty power supplies and fans as causes of throttling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...facts.bmc import BmcPart
from ...inventory.snapshot import Snapshot
from ...report import Finding

_THROTTLING = frozenset({"gpu-throttled", "cpu-throttled"})
_KINDS = {"power": "power supply", "thermal": "fan", "hot": "fan", "°C": "fan"}


def with_bmc_causes(snapshot: Snapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings; those about throttling with the parts that the management controller reports as faulty."""
    faulty = [one for one in snapshot.of(BmcPart).values() if one.health in ("Warning", "Critical")]
    for finding in findings:
        kinds = {kind for word, kind in _KINDS.items() if word in finding.message}
        parts = [one for one in faulty if one.kind in kinds] if finding.code in _THROTTLING else []
        yield _with(finding, parts) if parts else finding


def _with(finding: Finding, parts: list[BmcPart]) -> Finding:
    names = ", ".join(f"{one.kind} {one.name}: {one.health}" for one in parts)
    cause = f"the management controller reports {names}" + (f"; else {finding.cause}" if finding.cause else "")
    return replace(finding, cause=cause, evidence=(*finding.evidence, *(one.cites["health"] for one in parts)))
