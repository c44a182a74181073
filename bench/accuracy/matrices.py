"""How often measured matrices lead to the right finding: python -m bench.accuracy.matrices [SEEDS]

Copies between all GPUs of described nodes, and to and from the host, have the rates of healthy machines with 2 % noise.
One fault without a state is added: an uplink, a root port, two NVLinks, access control, writes that collapse. A result
is right if the only warning or worse has the right code and a right subject. The exit code is 1 if fewer than 95 of 100
results are right.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from bench.accuracy.measured import NOW, SIZE, Measured, healthy, report_on, seen, single
from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.facts.records import Flow, Record
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import limited
from linkgauge.models.graph.topology import Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.synthetic.build import build

NODES = Path(__file__).parents[2] / "tests/nodes"
NOISE, ENOUGH = 0.02, 0.95


class Scenario(Struct, frozen=True):
    """A node, the measurements with its fault, and the expected finding."""

    name: str
    node: str
    measured: Callable[[Topology], Measured]
    code: str
    subjects: frozenset[str]


def limiting(ends: Mapping[tuple[str, str], float], links: Iterable[str] = ()) -> Callable[[Topology], Measured]:
    """Links between two devices keep a share of their rate. `links`: ids of links that carry nothing."""

    def measured(topology: Topology) -> Measured:
        limits = {
            link.id: (link.rated or 0) * ends[link.a, link.b] for link in topology.links if (link.a, link.b) in ends
        }
        limits |= dict.fromkeys(links, 0.0)
        found = healthy(topology, single(topology))
        for flow in found:
            whole, left = (shares(topology, [flow], limited(some))[flow] for some in ({}, limits))
            found[flow] *= left / whole
        return found

    return measured


def redirected(pair: frozenset[str]) -> Callable[[Topology], Measured]:
    """Copies within this pair reach half their rate, as with ACS on (voipmonitor/rtx6kpro: 103 to 50 GB/s)."""

    def measured(topology: Topology) -> Measured:
        found = healthy(topology, single(topology))
        return {flow: rate / 2 if set(flow.ends) == pair else rate for flow, rate in found.items()}

    return measured


def collapsed(senders: tuple[str, ...], receivers: tuple[str, ...], rate: float) -> Callable[[Topology], Measured]:
    """Each copy alone is healthy. Simultaneous copies from all senders to all receivers share this rate."""

    def measured(topology: Topology) -> Measured:
        ends = tuple((a, b) for a in senders for b in receivers)
        crowd = [Flow("copy", one, SIZE, beside=tuple(other for other in ends if other != one)) for one in ends]
        return {**healthy(topology, single(topology)), **dict.fromkeys(crowd, rate / len(ends))}

    return measured


SCENARIOS = (
    Scenario("healthy", "rtx-pro-6000", lambda topology: healthy(topology, single(topology)), "", frozenset()),
    Scenario("healthy, NVLink", "hgx-h100", lambda topology: healthy(topology, single(topology)), "", frozenset()),
    Scenario("healthy, four cards", "a100-pcie", lambda topology: healthy(topology, single(topology)), "", frozenset()),
    Scenario(
        "uplink of a switch at a quarter",
        "rtx-pro-6000",
        limiting({("0000:20:01.0", "0000:21:00.0"): 0.25}),
        "bandwidth-low",
        frozenset({"0000:21:00.0"}),
    ),
    Scenario(
        "root port of a GPU at 40 %",
        "a100-pcie",
        limiting({("0000:a0:01.0", "0000:a1:00.0"): 0.4}),
        "bandwidth-low",
        frozenset({"0000:a1:00.0"}),
    ),
    Scenario(
        "two bad NVLinks of eighteen",
        "hgx-h100",
        limiting({}, ("gpu3/nvlink3", "gpu3/nvlink7")),
        "bandwidth-low",
        frozenset({"0000:3e:00.0"}),
    ),
    Scenario(
        "ACS on one switch",
        "rtx-pro-6000",
        redirected(frozenset({"gpu2", "gpu3"})),
        "pcie-acs-redirect",
        frozenset({"0000:21:00.0"}),
    ),
    Scenario(
        "writes that collapse, as known",
        "rtx-pro-6000",
        collapsed(("gpu4", "gpu5"), ("gpu0", "gpu2"), 6e9),
        "pcie-concurrent-collapse",
        frozenset({"0000:81:00.0"}),
    ),
    Scenario(
        "writes that collapse, as nobody knew",
        "rtx-pro-6000 9555:9354",
        collapsed(("gpu4", "gpu5"), ("gpu0", "gpu2"), 6e9),
        "pcie-concurrent-collapse",
        frozenset({"0000:81:00.0"}),
    ),
)


def records_of(node: str) -> list[Record]:
    """The records of a described node. "NAME 9555:9354" replaces the first text by the second in the description."""
    name, _, change = node.partition(" ")
    before, _, after = change.partition(":")
    text = (NODES / f"{name}.toml").read_text()
    return collect_all(SOURCES, build(text.replace(before, after) if before else text))


def report_of(records: Iterable[Record], measured: Measured, seed: int) -> Report:
    """The report on the node with these measurements and noise."""
    return report_on([*records, *seen(measured, random.Random(seed), NOISE)])


def is_right(report: Report, scenario: Scenario) -> bool:
    """Whether the expected finding is the only one above severity info."""
    grave = [one for one in report.findings if one.severity != "info"]
    if not scenario.code:
        return not grave
    return [one.code for one in grave] == [scenario.code] and grave[0].subject in scenario.subjects


def main(seeds: int = 100) -> int:
    """Print the table. Returns the exit code."""
    missed = False
    print(f"{'scenario':40} right of {seeds}")
    for scenario in SCENARIOS:
        records = records_of(scenario.node)
        measured = scenario.measured(assemble(records, Site(), NOW, origin="capture").topology)
        right = sum(is_right(report_of(records, measured, seed), scenario) for seed in range(seeds))
        print(f"{scenario.name:40} {right:5}")
        missed |= right < ENOUGH * seeds
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
