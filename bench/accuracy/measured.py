"""Rates of copies over the links of a node, healthy and slowed, and measurements of them with scatter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import permutations
from random import Random
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from linkgauge.agent.measuring.budget import BUDGETS
from linkgauge.agent.measuring.registry import PROBES, REPEATABLE, plan_of
from linkgauge.agent.measuring.session import repetitions
from linkgauge.models.bandwidth.predict import predict
from linkgauge.models.diagnosis.repetition import runs_to_repeat
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Evidence, Flow, Observation, Record
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import rated
from linkgauge.models.graph.topology import Hop, Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Origin, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.measure.gpu.copy_plan import nearest_memory
from linkgauge.probes.measure.probe import Probe, Scope

SIZE = 1 << 28  # bytes; long enough for all links
NOW = 2e9  # seconds since 1970
Measured: TypeAlias = Mapping[Flow, float]


class Loss(Struct, frozen=True):
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


class Spent(Struct, frozen=True):
    """What measuring a node has cost, by the plan of the probes: rounds, measured rates, seconds and bytes."""

    rounds: int
    rates: int
    seconds: float
    moved: float


def repeated(
    snapshot: Snapshot, rates: Measured, chance: Random, scatter: float
) -> tuple[Sequence[Observation], Spent]:
    """Measure all rates once, then the undecided ones again, as the program does with --level full.

    Stops when all flows are decided, or when the next batch does not fit into the budget beside the other probes.
    """
    observations = seen(rates, chance, scatter, snapshot.now)
    report = evaluate(replace(snapshot, observations=tuple(observations)))
    scope = Scope(effort="full", ends=frozenset(device.id for device in report.topology.devices))
    plans = [plan_of(name) for name in REPEATABLE]
    budget = BUDGETS[scope.effort]
    planned = [probe for plan in plans for probe in plan(report, scope)]
    others = [plan_of(name) for name in PROBES if name not in REPEATABLE]
    later = [probe for plan in others for probe in plan(report, scope)]
    spent = Spent(1, len(rates), sum(one.seconds for one in planned), sum(one.bytes for one in planned))
    while True:
        undecided = runs_to_repeat(replace(snapshot, observations=tuple(observations)), report)
        todo = {flow: rate for flow, rate in rates.items() if frozenset((flow.ends,)) in undecided}
        rest = budget.for_repetitions(spent.seconds, spent.moved, later)
        planned = repetitions(report, scope, frozenset(_run(report.topology, flow) for flow in todo), rest, plans)
        rounds = _rounds(planned, todo)
        if not rounds:
            break
        for _ in range(rounds):
            observations += seen(todo, chance, scatter, snapshot.now)
        spent = Spent(
            spent.rounds + rounds,
            spent.rates + rounds * len(todo),
            spent.seconds + sum(one.seconds for one in planned),
            spent.moved + sum(one.bytes for one in planned),
        )
    return observations, spent


def _run(topology: Topology, flow: Flow) -> frozenset[tuple[str, ...]]:
    """The run of the probe that measures the flow: the probe uses the nearest memory."""
    gpu = next(end for end in flow.ends if end != "host")
    return frozenset({tuple(nearest_memory(topology, gpu) if end == "host" else end for end in flow.ends)})


def _rounds(planned: Sequence[Probe], todo: Measured) -> int:
    """How many times these probes measure each flow."""
    runs = sum(">" in word for probe in planned for word in probe.args)
    return runs // len(todo) if todo else 0


def report_on(records: Iterable[Record], now: float = NOW, origin: Origin = "capture") -> Report:
    """The report on these records."""
    return evaluate(assemble(list(records), Site(), now, origin=origin))
