"""Collectives whose bus bandwidth falls with the size of the message, in one table of a text.

The bus bandwidth of a sound system rises with the size to the rate of its links. No published table falls below
0.96 of its best rate at the two largest sizes (bench/accuracy/collectives).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...facts.machine import Node
from ...facts.records import COLLECTIVES, Flow, Observation
from ...facts.units import as_gigabytes, as_size
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule

_FEWEST, _LEAST = 3, 1 << 20  # sizes of a table; bytes of its largest message
_BELOW, _FAR_BELOW = 0.6, 0.2  # of the best rate, at the two largest sizes, and at the largest one alone


@once_per_snapshot
def _falling(snapshot: Snapshot) -> Sequence[tuple[Observation, Observation]]:
    """The best and the last rate of each table that falls."""
    tables = defaultdict[tuple[str, tuple[str, ...]], dict[int, Observation]](dict)
    for flow, several in snapshot.observed.items():
        rates = [one for one in several if one.quantity == "bus_bandwidth" and one.value]
        if isinstance(flow, Flow) and flow.size and flow.op in COLLECTIVES and rates:
            tables[flow.op, flow.ends][flow.size] = max(rates, key=lambda one: one.value)
    return [found for table in tables.values() if (found := _fall(table))]


def _fall(table: dict[int, Observation]) -> tuple[Observation, Observation] | None:
    sizes = sorted(table)
    if len(sizes) < _FEWEST or sizes[-1] < _LEAST:
        return None
    best = max(table.values(), key=lambda one: one.value)
    shares = [table[size].value / best.value for size in sizes[-2:]]
    return (best, table[sizes[-1]]) if max(shares) < _BELOW or shares[-1] < _FAR_BELOW else None


def has_fall(snapshot: Snapshot, node: Node) -> bool:
    """Select texts with such a table."""
    return snapshot.origin == "dumps" and bool(_falling(snapshot))


def falls(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The rate of the largest messages, beside the best rate of the same table."""
    for best, last in _falling(snapshot):
        flow, of = last.about, best.about
        assert isinstance(flow, Flow)
        assert isinstance(of, Flow)
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="warning",
            confidence="likely",
            subject=flow.subject,
            message=f"{flow.op} {flow.subject} reaches {as_gigabytes(last.value)} with {as_size(flow.size or 0)}, but "
            f"{as_gigabytes(best.value)} with {as_size(of.size or 0)}: the rate of good links does not fall with the "
            "size",
            expected=best.value,
            observed=last.value,
            unit="bytes_per_second",
            basis=COHORT,
            expected_source=f"the best rate of the same table ({best.evidence.source})",
            cause="losses or pauses in the network under load, a wrong choice of algorithm or protocol, or another job",
            evidence=(last.evidence, best.evidence),
            remedy="Read the counters of all ports during the test (ethtool -S, perfquery): drops, retransmissions, "
            "pauses. Then repeat it with NCCL_DEBUG=INFO and with NCCL_ALGO=Ring.",
        )


RULES = (Rule("bandwidth-low", Node, (), falls, has_fall),)
