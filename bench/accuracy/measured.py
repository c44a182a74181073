"""Rates of copies over the links of a node, healthy and slowed, and measurements of them with scatter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from random import Random
from typing import TypeAlias

from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import rated
from linkgauge.models.graph.topology import Hop, Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Origin, Report
from linkgauge.models.site.schema import Site

SIZE = 1 << 28  # bytes; long enough for all links
NOW = 2e9  # seconds since 1970
Measured: TypeAlias = Mapping[Flow, float]


@dataclass(frozen=True, slots=True)
class Loss:
    """The remaining share of hops (sender, receiver) and of pairs of ends, and the ids of links that carry nothing."""

    hops: Mapping[tuple[str, str], float] = field(default_factory=dict)
    pairs: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    down: frozenset[str] = frozenset()


def single(topology: Topology) -> list[Flow]:
    """All copies between GPUs, and between each GPU and the nearest memory, one at a time."""
    gpus = sorted(alias for one in topology.devices if one.kind == "gpu" for alias in one.aliases or (one.id,))
    host = [ends for gpu in gpus for ends in (("host", gpu), (gpu, "host"))]
    return [Flow("copy", ends, SIZE) for ends in (*host, *permutations(gpus, 2))]


def healthy(topology: Topology, flows: Iterable[Flow]) -> dict[Flow, float]:
    """The typical rate of each flow alone, in bytes per second."""
    return {flow: reached.typical for flow in flows if (reached := predict(topology, [flow]).get(flow))}


def slowed(topology: Topology, whole: Measured, losses: Iterable[Loss]) -> dict[Flow, float]:
    """The rates with these losses. The tightest hop of a path sets its rate."""
    several = [loss for loss in losses if loss != Loss()]
    if not several:
        return dict(whole)
    left = partial(_left, several)
    found = {}
    for flow, rate in whole.items():
        share = 1.0
        for one in several:
            share *= one.pairs.get(flow.ends, 1.0)
        before, after = (shares(topology, [flow], what).get(flow) for what in (rated, left))
        found[flow] = rate * share * (after / before if before and after else 1.0)
    return found


def _left(losses: Iterable[Loss], hop: Hop) -> float:
    share = 1.0
    down: frozenset[str] = frozenset()
    for one in losses:
        share *= one.hops.get((hop.sender, hop.receiver), 1.0)
        down |= one.down
    return share * rated(Hop(hop.sender, hop.receiver, tuple(link for link in hop.links if link.id not in down)))


def seen(measured: Measured, chance: Random, scatter: float, at: float = 1.0) -> list[Observation]:
    """Measurements with this relative standard deviation."""
    return [
        Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=rate * chance.gauss(1, scatter),
            at=at,
            busy=True,
            evidence=Evidence("matrix", flow.subject),
        )
        for flow, rate in measured.items()
    ]


def report_on(records: Iterable[Record], now: float = NOW, origin: Origin = "capture") -> Report:
    """The report on these records."""
    return evaluate(assemble(list(records), Site(), now, origin=origin))
