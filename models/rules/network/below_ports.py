"""Tests between nodes that reach a small part of the rate at which all ports of the text are up.

One stream of TCP does not fill a fast port, but it reaches more than a port of 10 Gbit/s. A lower rate goes over
another network, or the path loses packets.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Net, Node
from ...facts.network_paths import EXPECTED, NodePair
from ...facts.units import as_gigabytes
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_PART = 0.1  # of the slowest port
_ONE_STREAM = 1.5e9  # bytes per second


def is_far_below(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with such rates."""
    return snapshot.origin == "dumps" and any(below_ports(snapshot, node))


def below_ports(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """One finding for the fastest of all pairs."""
    pairs = [one for one in snapshot.of(NodePair).values() if one.b and one.rate and one.key != EXPECTED]
    ports = [one for one in snapshot.of(Net).values() if one.speed and one.carrier is not False]
    if not pairs or not ports:
        return
    best, port = max(pairs, key=lambda one: one.rate or 0), min(ports, key=lambda one: one.speed or 0)
    rate, speed = best.rate or 0.0, port.speed or 0.0
    if rate < min(_PART * speed, _ONE_STREAM):
        yield Finding(
            code="bandwidth-low",
            kind="measurement",
            severity="warning",
            confidence="possible",
            subject=best.key if len(pairs) == 1 else "node",
            message=f"the fastest of {len(pairs)} tests between nodes, {best.key}, reaches {as_gigabytes(rate)}, "
            f"{rate / speed:.0%} of {as_gigabytes(speed)}: port {port.key} is up at this rate",
            expected=speed,
            observed=rate,
            unit="bytes_per_second",
            basis="capability",
            expected_source=f"the speed of port {port.key}",
            cause="packets are lost in a switch, a cable or a queue, or the test ran over another network",
            evidence=(*cited(best, "rate"), *cited(port, "speed")),
            remedy="Check which interface the test uses: ip route get ADDRESS. Count retransmits and the drops of each "
            "switch port. Repeat the test without the switch.",
        )


RULES = (Rule("bandwidth-low", Node, (), below_ports, is_far_below),)
