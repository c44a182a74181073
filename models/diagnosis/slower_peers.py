"""Copies with peer access that are slower than the same copies through host memory, in one set of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ..bandwidth.best_rates import best_observations
from ..facts.averages import median
from ..facts.records import Flow
from ..facts.units import as_gigabytes
from ..inventory.snapshot import Snapshot
from ..report import COHORT, Finding, Level

# Peer copies between two processors are somewhat slower than copies in two steps on healthy machines: each step uses
# its own links. A path that loses a third has a fault or a limit that a library has to go around.
_MUCH = 2 / 3
_HOST, _DIRECT = "host", ("", "pcie")
_CAUSES = ("pcie-acs-redirect", "iommu-translation", "pcie-path-bottleneck", "p2p-disabled", "nvlink-inactive")
_MOST_EVIDENCE = 6


def slower_peers(snapshot: Snapshot, levels: Sequence[Level], states: Iterable[Finding]) -> Iterator[Finding]:
    """One finding for all such pairs, unless a state that was read is the cause."""
    rates = {level.flow: level.observed for level in levels if level.observed}
    staged = {replace(flow, via=""): rate for flow, rate in rates.items() if flow.via == _HOST}
    slow = [
        (flow, rate, staged[replace(flow, via="")])
        for flow, rate in rates.items()
        if flow.via in _DIRECT and rate < _MUCH * staged.get(replace(flow, via=""), 0.0)
    ]
    if slow and not any(one.code in _CAUSES for one in states):
        yield _finding(snapshot, slow, sum(flow.via in _DIRECT and replace(flow, via="") in staged for flow in rates))


def _finding(snapshot: Snapshot, slow: Sequence[tuple[Flow, float, float]], pairs: int) -> Finding:
    best = best_observations(snapshot)
    direct, host = (median(rates) for rates in list(zip(*slow, strict=True))[1:])
    return Finding(
        code="pcie-peer-slow",
        kind="measurement",
        severity="warning",
        confidence="likely",
        subject=_subject([flow for flow, _, _ in slow]),
        message=f"with peer access, {len(slow)} of {pairs} copies between GPUs reach {as_gigabytes(direct)}; "
        f"without it, the same copies through host memory reach {as_gigabytes(host)}",
        expected=host,
        observed=direct,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source="the same copies through host memory, in the same output",
        cause="access control (ACS) or the IOMMU sends peer traffic through the processor, or a limit of the chipset",
        explains=tuple(dict.fromkeys(f"bandwidth-low:{flow.subject}" for flow, _, _ in slow)),
        evidence=tuple(dict.fromkeys(best[flow].evidence for flow, _, _ in slow))[:_MOST_EVIDENCE],
    )


def _subject(flows: Sequence[Flow]) -> str:
    """The pair, or the GPU that all pairs have in common, else the node."""
    pairs = {frozenset(flow.ends) for flow in flows}
    common = frozenset.intersection(*pairs)
    if len(pairs) == 1:
        return "-".join(sorted(common))
    return next(iter(common)) if len(common) == 1 else "node"
