"""Collectives whose equal runs differ by far more than noise: something slows some of the runs."""

from __future__ import annotations

from collections.abc import Iterator

from ..bandwidth.message_size import full
from ..catalog import NOT_ENOUGH_EVIDENCE
from ..facts.records import COLLECTIVES, Flow, Observation
from ..facts.units import as_bytes, as_gigabytes
from ..inventory.snapshot import Snapshot
from ..report import Finding

_FEWEST = 6  # runs; the first of them may include the setup of connections
# Long collectives of a quiet cluster repeat within a few percent. A quarter of the runs is this share below the best.
_SWING = 0.7
_MOST_EVIDENCE = 4


def unsteady(snapshot: Snapshot) -> Iterator[Finding]:
    """One finding for each collective and message size."""
    for flow, several in snapshot.observed.items():
        if isinstance(flow, Flow) and flow.op in COLLECTIVES and flow.size and flow.size >= full(flow.op):
            runs = sorted((one for one in several if one.quantity == "bus_bandwidth"), key=lambda one: one.value)
            if len(runs) >= _FEWEST and runs[len(runs) // 4].value < _SWING * runs[-1].value:
                yield _finding(flow, flow.size, runs)


def _finding(flow: Flow, size: int, runs: list[Observation]) -> Finding:
    """`runs` in ascending order of their rates."""
    low, quarter, high = runs[0].value, runs[len(runs) // 4].value, runs[-1].value
    return Finding(
        code=NOT_ENOUGH_EVIDENCE,
        kind="measurement",
        severity="info",
        confidence="likely",
        subject=flow.subject,
        fact=f"{len(runs)} equal runs of {flow.op} swing between {as_gigabytes(low)} and {as_gigabytes(high)}",
        message=f"{len(runs)} equal runs of {flow.op} with {as_bytes(size)} swing between {as_gigabytes(low)} and "
        f"{as_gigabytes(high)}: a quarter of them reach at most {as_gigabytes(quarter)}",
        expected=high,
        observed=low,
        unit="bytes_per_second",
        expected_source="the fastest of these runs",
        cause="something slows some of the runs: other traffic in the network, or a node or link that is slow at times",
        evidence=tuple(one.evidence for one in (*runs[: _MOST_EVIDENCE - 1], runs[-1])),
        case="unsteady",
    )
